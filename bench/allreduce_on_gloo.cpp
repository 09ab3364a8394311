#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <functional>
#include <memory>
#include <vector>

#include "bench/allreduce_case.h"
#include "runtime/base/error.h"
#include "tests/support/temporary_folder.h"

namespace troupe::bench {
namespace {

std::shared_ptr<gloo::Context> connect(gloo::rendezvous::Store& store, int rank, int processes) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, processes);
  context->connectFullMesh(store, device);
  return context;
}

// Nobody goes before all are done: whose peer has gone fails, though it has all that it needs.
void leave(gloo::rendezvous::Store& store, int rank, int processes) {
  const auto key = [](int of) { return fmt::format("done.{}", of); };
  store.set(key(rank), {'1'});
  std::vector<std::string> all;
  for (int i = 0; i < processes; ++i) all.push_back(key(i));
  store.wait(all);
}

// One all-reduce of `values` in place.
std::function<void()> make_step(const std::shared_ptr<gloo::Context>& context,
                                std::size_t algorithm, std::vector<float>& values) {
  if (algorithm >= 2) {
    const std::vector<float*> parts{values.data()};
    const auto count = static_cast<int>(values.size());
    std::shared_ptr<gloo::Algorithm> made;
    if (algorithm == 2) {
      made = std::make_shared<gloo::AllreduceRingChunked<float>>(context, parts, count);
    } else {
      made = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(context, parts, count);
    }
    return [made] { made->run(); };
  }
  auto options = std::make_shared<gloo::AllreduceOptions>(context);
  options->setAlgorithm(algorithm == 0 ? gloo::AllreduceOptions::Algorithm::RING
                                       : gloo::AllreduceOptions::Algorithm::BCUBE);
  options->setOutput(values.data(), values.size());
  void (*const sum)(void*, const void*, const void*, std::size_t) = &gloo::sum<float>;
  options->setReduceFunction(sum);
  return [options] { gloo::allreduce(*options); };
}

AllreduceRun be_rank(const AllreduceLoad& load, std::size_t algorithm, const std::string& folder,
                     int rank) {
  try {
    gloo::rendezvous::FileStore store(folder);
    const auto context = connect(store, rank, load.processes);
    std::vector<float> values(load.elements());
    fill(rank, values);
    const auto step = make_step(context, algorithm, values);
    step();
    if (std::string fault = fault_of(load, values); !fault.empty()) return {0, 0, fault};
    for (int i = 1; i < kWarmingSteps; ++i) step();
    AllreduceWatch watch;
    watch.start();
    for (int i = 0; i < load.steps; ++i) step();
    AllreduceRun run = watch.stop(load);
    leave(store, rank, load.processes);
    return run;
  } catch (const std::exception& failure) {
    return {0, 0, failure.what()};
  }
}

}  // namespace

AllreduceRun allreduce_on_gloo(const AllreduceLoad& load, std::size_t algorithm) {
  const TemporaryFolder folder;
  return run_forked(load.processes,
                    [&](int rank) { return be_rank(load, algorithm, folder.path(), rank); });
}

}  // namespace troupe::bench
