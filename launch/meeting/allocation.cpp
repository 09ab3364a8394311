#include "launch/meeting/allocation.h"

#include <unistd.h>

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "launch/machine/claimed_ports.h"
#include "launch/machine/this_host.h"
#include "launch/meeting/key_folder.h"
#include "launch/meeting/pmi.h"
#include "runtime/base/host_name.h"
#include "runtime/base/json_reader.h"
#include "runtime/transport/resolve.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::uint32_t kMostProcesses = 4096;
constexpr std::uint32_t kMostPort = 65533;
constexpr const char* kNote = "address";
constexpr const char* kEverywhere = "everywhere";

Error bad(const std::string& why) { return {ErrorKind::kUsage, why}; }

// Reads variables that have to be there.
class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  bool has(const char* name) const { return variables_(name).has_value(); }
  Result<std::string> text(const char* name) const {
    auto value = variables_(name);
    if (!value) return bad(fmt::format("the environment has no {}", name));
    return *std::move(value);
  }
  Result<std::uint32_t> number(const char* name) const {
    ASSIGN_OR_RETURN(const std::string value, text(name));
    const char* const end = value.data() + value.size();
    std::uint32_t number = 0;
    const auto read = std::from_chars(value.data(), end, number);
    if (read.ec != std::errc() || read.ptr != end) {
      return bad(fmt::format("{} in the environment is no number: {}", name, value));
    }
    return number;
  }
  Result<Allocation> allocation(const char* rank, const char* size, const char* place) const {
    Allocation found;
    ASSIGN_OR_RETURN(found.rank, number(rank));
    ASSIGN_OR_RETURN(found.size, number(size));
    if (has(place)) {
      ASSIGN_OR_RETURN(found.place, number(place));
    }
    if (found.rank >= found.size || found.size > kMostProcesses) {
      return bad(fmt::format("{} is {} and {} is {}; there is one of up to {}", rank, found.rank,
                             size, found.size, kMostProcesses));
    }
    return found;
  }

 private:
  const Variables& variables_;
};

Result<Allocation> of_ranks(const Reader& reader) {
  ASSIGN_OR_RETURN(Allocation found, reader.allocation("RANK", "WORLD_SIZE", "LOCAL_RANK"));
  if (found.size == 1) return found;
  ASSIGN_OR_RETURN(const std::uint32_t port, reader.number("MASTER_PORT"));
  if (port < 1 || port > kMostPort) {
    return bad(
        fmt::format("MASTER_PORT in the environment is {}; with the two behind it there is "
                    "one from 1 to {}",
                    port, kMostPort));
  }
  ASSIGN_OR_RETURN(found.host, reader.text("MASTER_ADDR"));
  found.port = static_cast<std::uint16_t>(port);
  found.name = fmt::format("{}:{}", found.host, port);
  return found;
}

Result<Allocation> of_open_mpi(const Reader& reader) {
  ASSIGN_OR_RETURN(Allocation found,
                   reader.allocation("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                     "OMPI_COMM_WORLD_LOCAL_RANK"));
  if (found.size == 1) return found;
  ASSIGN_OR_RETURN(const std::string job, reader.text("PMIX_NAMESPACE"));
  found.name = "mpirun " + job;
  return found;
}

Result<Allocation> of_mpich(const Reader& reader) {
  ASSIGN_OR_RETURN(Allocation found, reader.allocation("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"));
  if (found.size == 1) return found;
  ASSIGN_OR_RETURN(const std::uint32_t descriptor, reader.number("PMI_FD"));
  ASSIGN_OR_RETURN(const std::string job, name_of_pmi_job(static_cast<int>(descriptor)));
  found.name = "mpiexec " + job;
  return found;
}

Result<Allocation> of_slurm(const Reader& reader) {
  ASSIGN_OR_RETURN(Allocation found,
                   reader.allocation("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"));
  if (found.size == 1) return found;
  ASSIGN_OR_RETURN(const std::string job, reader.text("SLURM_JOB_ID"));
  ASSIGN_OR_RETURN(const std::string step, reader.text("SLURM_STEP_ID"));
  found.name = fmt::format("Slurm step {}.{}", job, step);
  // A job that was requeued keeps its number.
  if (const auto restart = reader.text("SLURM_RESTART_COUNT"); restart.ok()) {
    found.name += " restart " + *restart;
  }
  return found;
}

// As TensorFlow has it: {"cluster": {"chief": ["HOST:PORT"], "worker": [...]}, "task": {"type":
// "worker", "index": 0}}. A chief, or a master, stands before the workers.
Result<Allocation> of_tensorflow(const Reader& reader) {
  ASSIGN_OR_RETURN(const std::string text, reader.text("TF_CONFIG"));
  const nlohmann::json config = runtime::parse_json(text);
  const auto unreadable = [] {
    return bad(
        "TF_CONFIG in the environment is not {\"cluster\": {\"worker\": [\"HOST:PORT\", ...]}, "
        "\"task\": {\"type\": \"worker\", \"index\": NUMBER}}");
  };
  if (!config.is_object() || !config.contains("cluster")) return Allocation{};
  const nlohmann::json& cluster = config["cluster"];
  const nlohmann::json task = config.value("task", nlohmann::json::object());
  if (!cluster.is_object() || !task.is_object()) return unreadable();
  const nlohmann::json type = task.value("type", nlohmann::json());
  const nlohmann::json index = task.value("index", nlohmann::json());
  std::vector<std::string> addresses;
  std::optional<std::uint32_t> rank;
  for (const char* kind : {"chief", "master", "worker"}) {
    if (!cluster.contains(kind)) continue;
    if (!cluster[kind].is_array()) return unreadable();
    for (std::size_t i = 0; i < cluster[kind].size(); ++i) {
      if (!cluster[kind][i].is_string()) return unreadable();
      if (type == kind && index == i) rank = static_cast<std::uint32_t>(addresses.size());
      addresses.push_back(cluster[kind][i].get<std::string>());
    }
  }
  if (addresses.size() < 2) return Allocation{};
  if (!rank) {
    return bad(
        fmt::format("TF_CONFIG makes this process {} number {}, which is neither chief nor "
                    "worker of its cluster: there is nothing for it to do",
                    type.dump(), index.dump()));
  }
  const auto first = runtime::parse_address(addresses.front());
  if (addresses.size() > kMostProcesses || !first.ok() || first->port == 0 ||
      first->port > kMostPort) {
    return unreadable();
  }
  Allocation found;
  found.rank = *rank;
  found.size = static_cast<std::uint32_t>(addresses.size());
  found.host = first->host;
  found.port = first->port;
  found.name = addresses.front();
  return found;
}

// ---- Where they meet

std::string folder_of(const Allocation& allocation, const std::string& prefix) {
  std::string name = allocation.name;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  }
  return prefix + name;
}

std::string with_key(const std::string& address, const std::string& key) {
  return key.empty() ? address : fmt::format("{}#{}", address, key);
}

// The names and numbers of this machine, the one by which its scheduler knows it first.
std::vector<std::string> own_names() {
  std::vector<std::string> names;
  for (const char* variable : {"SLURMD_NODENAME", "PMIX_HOSTNAME"}) {
    if (const char* const name = std::getenv(variable)) names.emplace_back(name);
  }
  names.push_back(runtime::host_name());
  for (std::string& number : interface_addresses()) names.push_back(std::move(number));
  return names;
}

// Any ports of an address of this machine that others reach.
std::string own_endpoint() {
  for (const std::string& name : own_names()) {
    const auto resolved = resolve_host(name);
    if (resolved.ok() && !resolved->loopback) return runtime::endpoint_with_port(*resolved, 0);
  }
  return {};
}

Result<Meeting> meet_at_named_host(const Allocation& allocation,
                                   const std::optional<std::string>& keys) {
  const auto resolved = resolve_host(allocation.host);
  if (!resolved.ok()) return resolved.error();
  runtime::Address at;
  at.host = allocation.host;
  at.port = allocation.port;
  if (!keys && resolved->loopback) {
    const std::string here = fmt::format("{}:{}", resolved->host, allocation.port);
    return Meeting{here, "tcp://" + here};
  }
  if (!keys) {
    return bad(
        fmt::format("the processes of {} join each other from other machines, which needs keys "
                    "that all of them have: make a folder with troupe keygen and give "
                    "cluster.keys",
                    allocation.name));
  }
  ASSIGN_OR_RETURN(const KeyFolder folder, read_key_folder(*keys));
  Meeting meeting{fmt::format("0.0.0.0:{}", allocation.port),
                  with_key(at.text(), folder.own.public_key),
                  {},
                  keys};
  if (allocation.rank == 0) {
    meeting.neighbours =
        resolved->loopback ? own_endpoint() : runtime::endpoint_with_port(*resolved, 0);
  }
  return meeting;
}

// The first's note: its port and key, whether it listens at all of its addresses, and below that
// its names, a line each.
Result<Meeting> read_note(const std::string& text, const std::optional<std::string>& keys,
                          const std::string& folder) {
  std::istringstream lines(text);
  runtime::Address at;
  std::string key, where;
  lines >> at.port >> key >> where >> std::ws;
  while (std::getline(lines, at.host)) {
    const auto resolved = resolve_host(at.host);
    const bool own = is_this_host(at.host);
    if (!own && (!resolved.ok() || resolved->loopback)) continue;
    if (own && where == kEverywhere) at.host = "127.0.0.1";
    Meeting meeting;
    meeting.dial = with_key(at.text(), key);
    if (own) meeting.neighbours = own_endpoint();
    meeting.keys = keys ? keys : std::optional(folder);
    return meeting;
  }
  return Error{ErrorKind::kLostPeers,
               fmt::format("none of the addresses in {}/{} can be reached from {}", folder, kNote,
                           runtime::host_name())};
}

}  // namespace

Result<std::optional<Allocation>> find_allocation(const Variables& variables) {
  const Reader reader(variables);
  const bool has_ranks =
      reader.has("RANK") && reader.has("WORLD_SIZE") && reader.has("MASTER_ADDR");
  const bool is_of_mpiexec = reader.has("PMI_RANK") && reader.has("MPI_LOCALRANKID");
  // A batch script of Slurm has no step, and is started once.
  const std::pair<bool, Result<Allocation> (*)(const Reader&)> starters[] = {
      {has_ranks, of_ranks},
      {reader.has("OMPI_COMM_WORLD_RANK"), of_open_mpi},
      {is_of_mpiexec, of_mpich},
      {reader.has("SLURM_STEP_ID"), of_slurm},
      {reader.has("TF_CONFIG"), of_tensorflow}};
  for (const auto& [is_there, read] : starters) {
    if (!is_there) continue;
    ASSIGN_OR_RETURN(Allocation found, read(reader));
    if (found.size > 1) return std::optional(std::move(found));
  }
  return std::optional<Allocation>();
}

Result<Meeting> open_meeting(const Allocation& allocation, const std::optional<std::string>& keys,
                             const std::optional<std::string>& listen, const std::string& prefix,
                             runtime::Disk& disk) {
  if (!allocation.host.empty()) return meet_at_named_host(allocation, keys);
  const std::string folder = folder_of(allocation, prefix);
  std::error_code error;
  // The keys of a run that is resumed may be there.
  const bool has_keys = keys && std::filesystem::equivalent(*keys, folder, error);
  if (!has_keys) std::filesystem::remove_all(folder, error);
  if (!has_keys && std::filesystem::exists(folder)) {
    return bad(fmt::format("{} is there and cannot be removed: {}", folder, error.message()));
  }
  std::filesystem::remove(folder + "/" + kNote, error);
  std::string key;
  if (keys) {
    RETURN_IF_ERROR(disk.make_folder(folder));
    ASSIGN_OR_RETURN(const KeyFolder own, read_key_folder(*keys));
    key = own.own.public_key;
  } else {
    ASSIGN_OR_RETURN(const KeyFolder made, make_key_folder(folder, allocation.name, disk));
    key = made.own.public_key;
  }
  runtime::Address at;
  at.host = "0.0.0.0";
  if (listen) {
    ASSIGN_OR_RETURN(at, runtime::parse_address(*listen));
  }
  Meeting meeting;
  if (at.port == 0) {
    ASSIGN_OR_RETURN(ClaimedPorts ports, claim_ports(0));
    at.port = ports.first;
    meeting.claim = std::move(ports.claim);
  }
  meeting.listen = at.text().substr(std::string_view("tcp://").size());
  meeting.neighbours = own_endpoint();
  meeting.keys = keys ? keys : std::optional(folder);
  const auto resolved = resolve_host(at.host);
  const bool everywhere = resolved.ok() && resolved->any;
  meeting.note_file = folder + "/" + kNote;
  meeting.note = fmt::format("{} {} {}\n", at.port, key, everywhere ? kEverywhere : "there");
  for (const std::string& name : everywhere ? own_names() : std::vector{at.host}) {
    meeting.note += name + "\n";
  }
  if (everywhere) at.host = "127.0.0.1";
  meeting.dial = with_key(at.text(), key);
  return meeting;
}

Result<void> MeetingNote::leave(runtime::Disk& disk) {
  if (meeting_.note_file.empty()) return {};
  return disk.replace(meeting_.note_file, std::as_bytes(std::span(meeting_.note)));
}

MeetingNote::~MeetingNote() {
  std::error_code ignored;
  if (!meeting_.note_file.empty()) std::filesystem::remove(meeting_.note_file, ignored);
}

Result<Meeting> find_meeting(const Allocation& allocation, const std::optional<std::string>& keys,
                             const std::string& prefix, const runtime::Clock& clock,
                             runtime::TimePoint deadline, const runtime::Log& log) {
  if (!allocation.host.empty()) return meet_at_named_host(allocation, keys);
  const std::string folder = folder_of(allocation, prefix), file = folder + "/" + kNote;
  constexpr runtime::Duration kPause = std::chrono::milliseconds(100);
  constexpr runtime::Duration kPatience = std::chrono::seconds(2);
  const runtime::TimePoint begun = clock.now();
  bool told = false;
  while (true) {
    const auto bytes = runtime::FileDisk().read(file);
    if (bytes.ok()) {
      const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
      return read_note(text, keys, folder);
    }
    if (clock.now() >= deadline) {
      return Error{
          ErrorKind::kLostPeers,
          fmt::format("the first process of {} has not left its address in {}; do all of them see "
                      "that folder? If not, give cluster.keys, and RANK, WORLD_SIZE, MASTER_ADDR "
                      "and MASTER_PORT in the environment; with --workers this process is alone",
                      allocation.name, file)};
    }
    if (!told && clock.now() - begun > kPatience) {
      log.info(fmt::format("waiting for the first process of {} to leave its address in {}",
                           allocation.name, file));
      told = true;
    }
    std::this_thread::sleep_for(kPause);
  }
}

Placement placement_in(const Allocation& allocation, const Meeting& meeting) {
  Placement placement;
  placement.members = allocation.size;
  placement.here = {0};
  const std::size_t key = meeting.dial.find('#');
  placement.network = MeetingPlace{meeting.listen, meeting.dial.substr(0, key), meeting.neighbours};
  return placement;
}

}  // namespace troupe::launch
