#pragma once

// A client of the page that says any bytes it likes, over a plain socket.

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::telemetry {

class RawClient {
 public:
  // To 127.0.0.1. `receive_bytes`: what the system holds for a client that does not read; 0: as it
  // likes.
  explicit RawClient(std::uint16_t port, int receive_bytes = 0);
  ~RawClient();
  RawClient(RawClient&& other) noexcept;
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // False: the other side has hung up.
  bool say(std::string_view bytes);
  // All until the other side has said its last.
  std::string rest();
  // Reads until `part` stands in what was heard, or the other side hung up; all heard so far.
  const std::string& hear(std::string_view part);
  const std::string& heard() const { return heard_; }
  void forget() { heard_.clear(); }
  // Says no more; still listens.
  void finish();

 private:
  bool receive();

  int socket_ = -1;
  std::string heard_;
};

// "GET PATH" with a right Host field, on a connection of its own; the whole answer.
std::string get(std::uint16_t port, const std::string& path, const std::string& fields = "");
std::string post(std::uint16_t port, const std::string& path, const std::string& body,
                 const std::string& fields = "");
// What stands behind the blank line.
std::string body_of(const std::string& answer);
// The first line's number; 0: it is no answer.
int status_of(const std::string& answer);

}  // namespace troupe::telemetry
