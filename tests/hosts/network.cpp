#include "tests/hosts/network.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "tests/support/json_value.h"

namespace troupe {
namespace {

using Words = std::vector<std::string>;

// Where Debian has `tool`, "" if it is not installed.
std::string path_of(const std::string& tool) {
  for (const char* folder : {"/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/"}) {
    if (std::filesystem::exists(folder + tool)) return folder + tool;
  }
  return {};
}

std::string cable(int host) { return fmt::format("cable{}", host); }

}  // namespace

std::string Network::address(int host) { return fmt::format("10.77.0.{}", host + 1); }

std::string Network::name(int host) const { return fmt::format("troupe-{}-{}", ::getpid(), host); }

bool Network::call(const std::vector<std::string>& words) {
  if (!refusal_.empty()) return false;
  std::vector<std::string> line = words;
  line.front() = path_of(words.front());
  if (line.front().empty()) {
    refusal_ = words.front() + " is not installed (package iproute2)";
    return false;
  }
  const ProcessEnd end = Process(line).wait();
  if (end.exit_code == 0) return true;
  refusal_ = fmt::format("{}: {}", fmt::join(words, " "), end.err);
  return false;
}

Network::Network(int hosts) : hosts_(hosts) {
  for (int host = 0; host < hosts; ++host) {
    call({"ip", "netns", "add", name(host)});
    call({"ip", "-n", name(host), "link", "set", "lo", "up"});
  }
  const std::string bridge = "bridge";
  call({"ip", "-n", name(0), "link", "add", bridge, "type", "bridge"});
  call({"ip", "-n", name(0), "address", "add", address(0) + "/24", "dev", bridge});
  call({"ip", "-n", name(0), "link", "set", bridge, "up"});
  for (int host = 1; host < hosts; ++host) {
    call({"ip", "-n", name(0), "link", "add", cable(host), "type", "veth", "peer", "name", "eth0",
          "netns", name(host)});
    call({"ip", "-n", name(0), "link", "set", cable(host), "master", bridge});
    call({"ip", "-n", name(0), "link", "set", cable(host), "up"});
    call({"ip", "-n", name(host), "address", "add", address(host) + "/24", "dev", "eth0"});
    call({"ip", "-n", name(host), "link", "set", "eth0", "up"});
  }
}

Network::~Network() {
  const std::string tool = path_of("ip");
  if (tool.empty()) return;
  for (int host = 0; host < hosts_; ++host) {
    Process({tool, "netns", "delete", name(host)}).wait();
  }
}

std::vector<std::string> Network::on(int host, const std::vector<std::string>& words) const {
  std::vector<std::string> all{path_of("ip"), "netns", "exec", name(host)};
  all = all + words;
  return all;
}

std::vector<std::string> Network::apart_on(int host, const std::vector<std::string>& words) const {
  std::vector<std::string> all{path_of("unshare"), "--pid", "--fork", "--kill-child",
                               "--mount-proc"};
  all = all + words;
  return on(host, all);
}

std::uint64_t Network::sent_by(int host) const {
  const ProcessEnd end =
      Process({path_of("ip"), "-n", name(host), "-json", "-stats", "link", "show", "dev", "eth0"})
          .wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  return parse_json(end.out).list().front()["stats64"]["tx"]["bytes"].integer();
}

bool Network::limit_rate(int host, const std::string& rate) {
  const auto limit = [&](const std::string& space, const std::string& device) {
    return call({"tc", "-n", space, "qdisc", "add", "dev", device, "root", "tbf", "rate", rate,
                 "burst", "32kbit", "latency", "100ms"});
  };
  return limit(name(0), cable(host)) && limit(name(host), "eth0");
}

bool Network::cut_cable(int host) {
  return call({"ip", "-n", name(0), "link", "set", cable(host), "down"});
}

bool Network::mend_cable(int host) {
  return call({"ip", "-n", name(0), "link", "set", cable(host), "up"});
}

// A bridge carries nothing between ports that are isolated.
bool Network::part(int one, int other) {
  const auto isolate = [&](int host) {
    return call({"ip", "-n", name(0), "link", "set", cable(host), "type", "bridge_slave",
                 "isolated", "on"});
  };
  return isolate(one) && isolate(other);
}

// What would begin a connection (SYN without ACK) goes into a cable that leads nowhere.
bool Network::shut_in(int host) {
  const std::string space = name(host), eth = "eth0", pit = "pit", bottom = "bottom";
  for (const Words& words :
       {Words{"ip", "-n", space, "link", "add", pit, "type", "veth", "peer", "name", bottom},
        Words{"ip", "-n", space, "link", "set", pit, "up"},
        Words{"ip", "-n", space, "link", "set", bottom, "up"},
        Words{"tc", "-n", space, "qdisc", "add", "dev", eth, "ingress"},
        Words{"tc",     "-n",       space,      "filter", "add",   "dev", eth,        "parent",
              "ffff:",  "protocol", "ip",       "u32",    "match", "ip",  "protocol", "6",
              "0xff",   "match",    "u8",       "0x02",   "0x12",  "at",  "33",       "action",
              "mirred", "egress",   "redirect", "dev",    pit}}) {
    if (!call(words)) return false;
  }
  return true;
}

}  // namespace troupe
