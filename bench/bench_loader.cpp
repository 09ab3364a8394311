// Events per second out of HDF5 files, next to h5py and PyTorch's DataLoader in the same run, plain
// and gzip, with one thread and several, warm (the page cache holds the file) and cold (it holds
// nothing of it), in three orders: that of the file; shuffled in windows, which
// is how Troupe shuffles what it reads from the disk; shuffled as a whole, which is how its memory
// cache and its peers do. What is read is compared with the generator's showers, and the peers'
// with what is read here, before anything is timed.

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure.h"
#include "pipeline/data/dataset.h"
#include "pipeline/data/sampler.h"
#include "pipeline/data/shower_dataset.h"
#include "runtime/base/buffer.h"
#include "runtime/base/descriptor.h"
#include "tests/support/temporary_folder.h"

namespace troupe::bench {
namespace {

using pipeline::Batch;
using pipeline::CacheMode;
using pipeline::Dataset;

constexpr std::size_t kBatch = 64;
constexpr int kThreads = 2;
constexpr std::size_t kImageBytes = 25 * 25 * 25 * sizeof(float);

struct Run {
  std::uint64_t events = 0;
  std::uint64_t peer_events = 0;  // read by what reads event by event
  int repeats = 0;
  std::string folder;
  int threads = kThreads;
  bool small = false;
  bool cold = false;  // the page cache holds nothing of what is read
  std::uint64_t shard_bytes = 0;

  // "cold, 2 threads"
  std::string text() const {
    return fmt::format("{}, {} thread{}", cold ? "cold" : "warm", threads, threads > 1 ? "s" : "");
  }
};

// Sums over what was read, by which readings are compared.
struct Checksum {
  double cells = 0;
  double energies = 0;
};

enum class Order { kOfFile, kWindows, kWhole };

const char* text(Order order) {
  if (order == Order::kOfFile) return "in order";
  return order == Order::kWindows ? "windows" : "shuffled";
}

// The seconds that readings of the same events took: on the clock, and of processors.
struct Times {
  std::vector<double> clock, processor;

  void add(double seconds, double processor_seconds) {
    clock.push_back(seconds);
    processor.push_back(processor_seconds);
  }
  // Measures what `work` takes.
  template <class Work>
  void add(const Work& work) {
    const auto start = std::chrono::steady_clock::now();
    const double processor_start = core_seconds();
    work();
    add(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
        core_seconds() - processor_start);
  }
};

// Events per second. Those of processor time tell more where other work is on the machine.
struct Rates {
  Spread clock, processor;
};

Rates rates_of(std::uint64_t events, const Times& times) {
  return {bench::rates_of(static_cast<double>(events), times.clock),
          bench::rates_of(static_cast<double>(events), times.processor)};
}

void print_rates(Order order, const std::string& reader, const Rates& rates) {
  const double megabytes = kImageBytes / 1e6;
  const auto in_megabytes = [&](const Spread& spread) {
    return fmt::format("{:7.0f} MB/s (min {:.0f}, max {:.0f})", spread.median * megabytes,
                       spread.lowest * megabytes, spread.highest * megabytes);
  };
  fmt::print("  {:<9} {:<38} {:8.0f} events/s {}, of processor time {}\n", text(order), reader,
             rates.clock.median, in_megabytes(rates.clock), in_megabytes(rates.processor));
  std::fflush(stdout);
}

Dataset open_file(const Run& run, const std::string& path, CacheMode cache) {
  pipeline::DatasetOptions options;
  options.paths = {path};
  options.cache = cache;
  options.threads = run.threads;
  options.shard_bytes = run.shard_bytes;
  options.cache_folder = run.folder + "/cache";
  options.index_folder = run.folder + "/index";
  // So small that a repeat finds nothing left of the one before it.
  options.window_bytes = std::max<std::uint64_t>(1, run.events * kImageBytes / 16);
  auto dataset = Dataset::open(options);
  CHECK(dataset.ok(), dataset.ok() ? "" : dataset.error().message);
  return std::move(dataset).value();
}

// Windows are those of a dataset without a memory cache; with one it is shuffled as a whole.
std::vector<std::uint64_t> order_of(const Dataset& dataset, bool shuffled) {
  std::vector<std::uint64_t> ids(dataset.size());
  std::iota(ids.begin(), ids.end(), 0u);
  if (!shuffled) return ids;
  const pipeline::EpochOrder order({.events = dataset.size(),
                                    .seed = 1,
                                    .window_blocks = dataset.window_blocks(),
                                    .blocks = dataset.blocks()},
                                   0);
  for (std::uint64_t& id : ids) id = order.event(id);
  return ids;
}

void read_all(Dataset& dataset, const std::vector<std::uint64_t>& ids,
              const std::function<void(const Batch&)>& use = {}) {
  for (std::size_t first = 0; first < ids.size(); first += kBatch) {
    Batch batch;
    const std::size_t count = std::min(kBatch, ids.size() - first);
    const auto result = dataset.read(std::span(ids).subspan(first, count), batch);
    CHECK(result.ok(), result.ok() ? "" : result.error().message);
    if (use) use(batch);
  }
}

// Has the page cache let go of all files of the folder, whose bytes are on the disk then.
void forget_pages(const std::string& folder) {
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder)) {
    if (!each.is_regular_file()) continue;
    const runtime::Descriptor file(::open(each.path().c_str(), O_RDONLY | O_CLOEXEC));
    CHECK(file.is_open() && ::fsync(file.number()) == 0 &&
              ::posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED) == 0,
          each.path().string());
  }
}

// A fresh Dataset for each repeat, unless the cache is in memory.
Rates time_ours(const Run& run, const std::string& path, CacheMode cache, bool shuffled) {
  Times times;
  std::optional<Dataset> dataset;
  for (int i = 0; i < run.repeats; ++i) {
    if (!dataset || cache != CacheMode::kMemory) dataset = open_file(run, path, cache);
    if (run.cold) forget_pages(run.folder);
    const auto ids = order_of(*dataset, shuffled);
    times.add([&] { read_all(*dataset, ids); });
  }
  return rates_of(run.events, times);
}

Checksum checksum_of(const Run& run, const std::string& path,
                     const std::vector<std::uint64_t>& ids) {
  Dataset dataset = open_file(run, path, CacheMode::kDisk);
  Checksum sum;
  read_all(dataset, ids, [&](const Batch& batch) {
    for (const float cell : batch.images.as<float>()) sum.cells += static_cast<double>(cell);
    for (const float energy : batch.energies()) sum.energies += 100 * static_cast<double>(energy);
  });
  return sum;
}

// Every event of the file against the generator.
bool holds_the_showers(const Run& run, const std::string& path,
                       const pipeline::ShowerGenerator& generator, runtime::ThreadTeam& team) {
  Dataset dataset = open_file(run, path, CacheMode::kNone);
  std::uint64_t first = 0;
  bool right = dataset.size() == run.events;
  read_all(dataset, order_of(dataset, false), [&](const Batch& batch) {
    std::vector<float> want(batch.images.size() / sizeof(float));
    std::vector<pipeline::Primary> primaries(batch.events);
    generator.generate(first, primaries, want, team);
    const auto got = batch.images.as<float>();
    right &= std::equal(got.begin(), got.end(), want.begin(), want.end());
    first += batch.events;
  });
  if (!right) fmt::print(stderr, "{}: not the generated showers\n", path);
  return right;
}

struct Peer {
  const char* library;  // as loader_peers.py calls it
  const char* name;
  int workers;
  std::uint64_t events_in_order;
  std::uint64_t events_shuffled;
  double aim_in_order;  // ratio; 0: none
  double aim_shuffled;
};

// What Troupe does itself: out of the file, as it lies in the page cache, and out of its memory
// cache.
struct Ours {
  Rates file, memory;
  Rates alone;  // as `file`, in order, with one thread as h5py has
};

// The run warm and cold, with one thread and several.
std::vector<Run> ways_of(const Run& like) {
  std::vector<Run> ways;
  for (const bool cold : {false, true}) {
    for (const int threads : {1, kThreads}) {
      ways.push_back(like);
      ways.back().threads = threads;
      ways.back().cold = cold;
    }
  }
  return ways;
}

// Opening, which checks all events and keeps what it has found, and opening again. The readings
// below begin with open files, those of peers with the file's name.
void print_openings(const Run& run, const std::string& path) {
  for (const bool again : {false, true}) {
    Times times;
    for (int i = 0; i < run.repeats; ++i) {
      if (!again) std::filesystem::remove_all(run.folder + "/index");
      times.add([&] { open_file(run, path, CacheMode::kNone); });
    }
    print_rates(Order::kOfFile, fmt::format("opening{}, {}", again ? " again" : "", run.text()),
                rates_of(run.events, times));
  }
}

// The caches beside each other. `none` is shuffled by windows.
void print_caches(const Run& like, const std::string& path) {
  for (const Run& run : ways_of(like)) {
    for (const CacheMode cache : {CacheMode::kNone, CacheMode::kDisk, CacheMode::kMemory}) {
      if (run.cold && cache == CacheMode::kMemory) continue;
      print_rates(cache == CacheMode::kNone ? Order::kWindows : Order::kWhole,
                  fmt::format("cache {}, {}", pipeline::text(cache), run.text()),
                  time_ours(run, path, cache, true));
    }
  }
}

// An epoch of all events, as a member has it that computes alone: as many events are wanted at a
// time as there is room for.
void read_shards(Dataset& dataset, std::span<const std::uint64_t> ids) {
  while (!ids.empty()) {
    const auto wanted = ids.first(std::min<std::size_t>(ids.size(), dataset.most_wanted()));
    const auto known = dataset.want(wanted, wanted.size(), 0);
    CHECK(known.ok(), known.ok() ? "" : known.error().message);
    read_all(dataset, {wanted.begin(), wanted.end()});
    ids = ids.subspan(wanted.size());
  }
}

// The first and the second epoch of a shard that has room for all events or for some. Nothing is
// known of their packed size at first, so few are wanted then, which the second epoch reads anew.
void print_shards(const Run& like, const std::string& path) {
  const std::uint64_t whole = open_file(like, path, CacheMode::kMemory).report().bytes_in_memory;
  for (Run run : ways_of(like)) {
    for (const auto& [bytes, room] :
         {std::pair(2 * whole, "all"), std::pair(whole / 4, "a quarter")}) {
      run.shard_bytes = std::max<std::uint64_t>(1, bytes);
      Times first, second;
      for (int i = 0; i < run.repeats; ++i) {
        Dataset dataset = open_file(run, path, CacheMode::kShard);
        const auto ids = order_of(dataset, true);
        for (Times* epoch : {&first, &second}) {
          if (run.cold) forget_pages(run.folder);
          epoch->add([&] { read_shards(dataset, ids); });
        }
      }
      for (const auto& [epoch, times] : {std::pair("1st", first), std::pair("2nd", second)}) {
        print_rates(Order::kWhole,
                    fmt::format("shard of {}, {} epoch, {}", room, epoch, run.text()),
                    rates_of(run.events, times));
      }
    }
  }
}

// The system's copy of the file's bytes out of the page cache, which no reader is faster than.
void print_bound(const Run& run, const std::string& path) {
  const runtime::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(file.is_open(), path);
  std::vector<char> block(1 << 20);
  Times times;
  for (int i = 0; i < run.repeats; ++i) {
    times.add([&] {
      ssize_t bytes = 1;
      for (off_t at = 0; bytes > 0; at += bytes) {
        bytes = ::pread(file.number(), block.data(), block.size(), at);
        CHECK(bytes >= 0, path);
      }
    });
  }
  print_rates(Order::kOfFile, "the file's bytes by pread, 1 thread", rates_of(run.events, times));
}

struct PeerResult {
  Checksum sum;
  Times times;
};

// Nothing if the peer is not installed or fails.
std::optional<PeerResult> run_peer(const Run& run, const std::string& path, const Peer& peer,
                                   bool shuffled, const std::vector<std::uint64_t>& ids) {
  const std::string ids_path = run.folder + "/ids";
  std::ofstream(ids_path) << fmt::format("{}\n", fmt::join(ids, "\n"));
  const std::string command =
      fmt::format("{} '{}' '{}' {} {} '{}' {} {} {}", TROUPE_PYTHON, TROUPE_LOADER_PEERS, path,
                  peer.library, shuffled ? "shuffled" : "in_order", ids_path, run.repeats,
                  peer.workers, run.cold ? "cold" : "warm");
  std::FILE* output = ::popen(command.c_str(), "r");
  if (output == nullptr) return std::nullopt;
  PeerResult result;
  double seconds = 0, processor = 0;
  if (std::fscanf(output, "checksum %lf %lf", &result.sum.cells, &result.sum.energies) == 2) {
    while (std::fscanf(output, " seconds %lf %lf", &seconds, &processor) == 2) {
      result.times.add(seconds, processor);
    }
  }
  const bool fine = ::pclose(output) == 0 && !result.times.clock.empty();
  return fine ? std::optional(result) : std::nullopt;
}

bool agree(const Checksum& ours, const Checksum& theirs) {
  const auto close = [](double a, double b) { return std::fabs(a - b) <= 1e-6 * std::fabs(a); };
  return close(ours.cells, theirs.cells) && close(ours.energies, theirs.energies);
}

// "file to h5py  0.7 x, aim 2: missed; of processor time 0.9 x"
void print_ratio(const char* peer, const char* reader, const Rates& ours, const Rates& theirs,
                 double aim) {
  const double ratio = ours.clock.median / theirs.clock.median;
  const std::string judged =
      aim > 0 ? fmt::format(", aim {}: {}", aim, ratio >= aim ? "met" : "missed") : "";
  fmt::print("  {:<9} {:<38} {:8.1f} x{}; of processor time {:.1f} x\n", "",
             fmt::format("{} to {}", reader, peer), ratio, judged,
             ours.processor.median / theirs.processor.median);
}

// False when the peer read something else.
bool compare(const Run& run, const std::string& path, const Peer& peer, Order order,
             const Ours& ours, std::vector<std::uint64_t> ids) {
  const bool shuffled = order != Order::kOfFile;
  ids.resize(
      std::min<std::size_t>(ids.size(), shuffled ? peer.events_shuffled : peer.events_in_order));
  const auto result = run_peer(run, path, peer, shuffled, ids);
  if (!result) {
    fmt::print("  {:<9} {:<38} not available\n", text(order), peer.name);
    return true;
  }
  if (!agree(checksum_of(run, path, ids), result->sum)) {
    fmt::print(stderr, "{}: {} read other values\n", path, peer.name);
    return false;
  }
  const Rates rates = rates_of(ids.size(), result->times);
  const double aim = shuffled ? peer.aim_shuffled : peer.aim_in_order;
  print_rates(order,
              fmt::format("{}, {}, {} events", peer.name, run.cold ? "cold" : "warm", ids.size()),
              rates);
  // Only out of windows does Troupe shuffle what it reads from a file.
  const char* file = order == Order::kWhole ? "file, by windows," : "file";
  print_ratio(peer.name, file, ours.file, rates, aim);
  if (!shuffled) {
    print_ratio(peer.name, "file, 1 thread,", ours.alone, rates, 0);
  }
  if (order != Order::kWindows) {
    print_ratio(peer.name, "memory cache", ours.memory, rates, aim);
  }
  return true;
}

// Troupe beside its peers in the three orders, warm or cold as the run is.
bool compare_orders(const Run& run, const std::string& path) {
  const std::uint64_t some = run.peer_events;
  const Peer peers[] = {{"h5py", "h5py", 1, run.events, some, 2, 0},
                        {"dataloader", "DataLoader of 2", 2, some, some, 0, 10},
                        {"dataloader", "DataLoader of 1", 1, some, some, 0, 10}};
  const Dataset from_file = open_file(run, path, CacheMode::kNone);
  const Dataset cached = open_file(run, path, CacheMode::kMemory);
  Run alone = run;
  alone.threads = 1;
  Ours ours;
  for (const Order order : {Order::kOfFile, Order::kWindows, Order::kWhole}) {
    const bool shuffled = order != Order::kOfFile;
    if (order != Order::kWhole) {
      ours.file = time_ours(run, path, CacheMode::kNone, shuffled);
      print_rates(order, "Troupe, file, " + run.text(), ours.file);
    }
    if (order == Order::kOfFile) {
      ours.alone = time_ours(alone, path, CacheMode::kNone, shuffled);
      print_rates(order, "Troupe, file, " + alone.text(), ours.alone);
    }
    if (order != Order::kWindows) {
      ours.memory = time_ours(run, path, CacheMode::kMemory, shuffled);
      print_rates(order, "Troupe, memory cache", ours.memory);
    }
    const auto ids = order_of(order == Order::kWindows ? from_file : cached, shuffled);
    for (const Peer& peer : std::span(peers).first(run.small ? 2 : 3)) {
      if (!compare(run, path, peer, order, ours, ids)) return false;
    }
  }
  return true;
}

bool bench_file(const Run& like, const std::string& path, const char* title) {
  fmt::print("{}: {} events, {} MB in the file\n", title, like.events,
             std::filesystem::file_size(path) / 1000000);
  print_openings(like, path);
  print_caches(like, path);
  print_shards(like, path);
  // Packed bytes are fewer, and bound nothing.
  if (std::filesystem::file_size(path) >= like.events * kImageBytes) print_bound(like, path);
  Run cold = like;
  cold.cold = true;
  return compare_orders(like, path) && (like.small || compare_orders(cold, path));
}

int run_bench(bool small) {
  runtime::keep_freed_memory();  // as the program does
  const TemporaryFolder folder;
  Run run{small ? 320u : 8000u, small ? 64u : 512u, small ? 1 : 5, folder.path()};
  run.small = small;
  fmt::print(
      "Where nothing is said, Troupe has {} threads. h5py has one. Troupe and h5py in order read "
      "all\n"
      "events, in slices of {}; the others read event by event, and the first {} of the order.\n",
      kThreads, kBatch, run.peer_events);
  runtime::ThreadTeam team(kThreads);
  pipeline::ShowerDatasetOptions options;
  options.events = run.events;
  options.chunk_events = 16;
  const auto generator = pipeline::ShowerGenerator::create(options.showers);
  bool right = generator.ok();
  for (const int level : {0, 4}) {
    options.gzip_level = level;
    const std::string path = folder / (level > 0 ? "gzip.h5" : "plain.h5");
    const auto written = pipeline::write_shower_dataset(options, path, team);
    CHECK(written.ok(), written.ok() ? "" : written.error().message);
    right = right && holds_the_showers(run, path, *generator, team) &&
            bench_file(run, path, level > 0 ? "gzip" : "plain");
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run_bench(argc > 1 && std::strcmp(argv[1], "--small") == 0);
}
