#pragma once

// What NVIDIA's management library says of a card. It is opened when it is first needed, and comes
// with the driver.

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::model::device {

// Negative: the card does not say.
struct CardLoad {
  std::uint64_t used_bytes = 0, memory_bytes = 0;  // by all processes
  double busy = -1.0;                              // share of the last moments, 0 to 1
  double watts = -1.0, celsius = -1.0;
};
// Of the card at this place of the PCI bus; nothing without the library. Any thread.
std::optional<CardLoad> card_load(const std::string& pci_bus_id);

}  // namespace troupe::model::device
