#pragma once

// The load of a card, as NVIDIA's management library tells it. The library comes with the driver
// and is opened when it is first needed.

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::model::device {

// Negative: the card does not say.
struct CardLoad {
  std::uint64_t used_bytes = 0, free_bytes = 0;  // of all processes, of none
  double busy = -1.0;                            // share of the last moments, 0 to 1
  double watts = -1.0, celsius = -1.0;
};
// The load of the card at this place of the PCI bus; nothing without the library. Any thread.
std::optional<CardLoad> card_load(const std::string& pci_bus_id);

}  // namespace troupe::model::device
