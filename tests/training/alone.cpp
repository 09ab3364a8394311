#include "tests/training/alone.h"

#include <algorithm>
#include <utility>

#include "runtime/base/random.h"

namespace troupe::training_test {

using pipeline::TrainingState;

config::Topology zoo_topology(const std::string& model, const std::vector<std::string>& overrides) {
  const bool pictures = model == "dcgan_mnist" || model == "digits";
  const std::string schema = pictures ? "idx" : model == "gan3d_51" ? "lcd-angle" : "lcd-fixed";
  // Nothing opens the file of pictures but tests that name another.
  const std::string train = pictures ? "none-images-idx3-ubyte" : "synthetic";
  // What the other models take is the default of their schema.
  const std::string preprocessing = model.ends_with("_12") ? ", preprocessing: {power: 0.35}"
                                    : model.ends_with("12_dense")
                                        ? ", preprocessing: {power: 0.5, scale: 1000}"
                                        : "";
  const std::string text = "name: test\nmodel: {zoo: " + model + "}\ndata: {train: " + train +
                           ", schema: " + schema + preprocessing + "}\n" +
                           (pictures ? "actors: {validator: {every: none}}\n" : "");
  auto loaded = config::parse_topology(text, "test", ".", overrides);
  CHECK(loaded.ok(), loaded.ok() ? "" : loaded.error().message);
  return std::move(loaded->topology);
}

namespace {

pipeline::TrainingOptions training_options(const config::Topology& topology) {
  pipeline::TrainingOptions options = topology.train.options;
  options.schedule = model::with_rounds(topology.model.gan, options.schedule);
  options.iterations_per_epoch = 1000;
  return options;
}

std::unique_ptr<const model::Gan> compile(const config::Topology& topology,
                                          const model::Backend& backend) {
  auto gan = model::Gan::compile(topology.model.gan, backend, topology.train.options.micro_batch);
  CHECK(gan.ok(), gan.ok() ? "" : gan.error().message);
  return std::move(gan).value();
}

}  // namespace

Alone::Alone(const config::Topology& topology, std::unique_ptr<model::Backend> backend, int threads)
    : backend_(std::move(backend)),
      columns_(topology.data.dataset.columns),
      options_(training_options(topology)),
      gan_(compile(topology, *backend_)),
      team_(threads, [this] { backend_->prepare_thread(); }),
      computer_(*gan_, options_, team_) {
  backend_->prepare_thread();
}

pipeline::MicroBatch Alone::micro_batch(std::uint32_t index, std::uint64_t data_seed) const {
  const auto events = static_cast<std::uint32_t>(gan_->batch());
  const model::Shape shape = gan_->image_shape();
  const auto values = static_cast<std::uint32_t>(events * shape.elements());
  pipeline::MicroBatch made;
  made.index = index;
  made.events.events = events;
  made.events.shape = {{static_cast<std::uint32_t>(shape.space[0]),
                        static_cast<std::uint32_t>(shape.space[1]),
                        static_cast<std::uint32_t>(shape.space[2])}};
  made.events.images = runtime::Buffer::allocate(values * sizeof(float));
  made.events.conditions =
      runtime::Buffer::allocate((3 + gan_->columns()) * events * sizeof(float));
  made.events.event_ids = runtime::Buffer::allocate(events * sizeof(std::uint64_t));
  const runtime::RandomPosition images{data_seed, 0, 0, 0, 9};
  const auto cells = made.events.images.mutable_as<float>();
  for (std::uint32_t i = 0; i < values; ++i) {
    const bool hit = runtime::random_uniform(images, 2 * i) < 0.2;
    cells[i] = hit ? static_cast<float>(0.5 * runtime::random_uniform(images, 2 * i + 1)) : 0.0F;
  }
  const runtime::RandomPosition conditions{data_seed, 0, 0, 0, 10};
  const auto columns = made.events.conditions.mutable_as<float>();
  const auto ids = made.events.event_ids.mutable_as<std::uint64_t>();
  for (std::uint32_t i = 0; i < events; ++i) {
    const auto u = [&](std::uint32_t k) { return runtime::random_uniform(conditions, 3 * i + k); };
    columns[i] = static_cast<float>(0.1 + 4.9 * u(0));
    columns[events + i] = static_cast<float>(1.1 + 0.9 * u(1));
    columns[2 * events + i] = static_cast<float>(5.0 + 100.0 * u(2));
    ids[i] = data_seed * 1000 + i;
  }
  for (std::size_t k = 0; k < gan_->columns(); ++k) {
    const std::vector<double>& values = columns_.at(k).values;
    for (std::uint32_t i = 0; i < events; ++i) {
      const double u = runtime::random_uniform({data_seed, 0, 0, 0, 11},
                                               static_cast<std::uint32_t>(k) * events + i);
      const auto nth = static_cast<std::size_t>(u * static_cast<double>(values.size()));
      columns[(3 + k) * events + i] = static_cast<float>(values.empty() ? u : values[nth]);
    }
  }
  return made;
}

Contribution contribution_of(const pipeline::StepShare& step, std::uint32_t attempt,
                             const std::vector<std::int16_t>& scales) {
  Contribution result;
  result.header = step.begin_header(attempt);
  result.layout = step.sums();
  result.sums = runtime::Buffer::zeroed(result.layout.bytes());
  const auto& [front, kind] = result.layout.front;
  for (const pipeline::Bucket& bucket : {pipeline::Bucket{0, front, kind},
                                         pipeline::Bucket{front, result.layout.elements - front}}) {
    const runtime::Buffer part = step.add_up(bucket, scales, result.header);
    std::ranges::copy(part.bytes(),
                      result.sums.mutable_data() + result.layout.offset(bucket.offset));
  }
  step.finish_header(scales, result.header);
  return result;
}

pipeline::StepRecord record_of(const model::ContributionLayout& layout,
                               const std::vector<double>& values, std::uint64_t step,
                               std::uint64_t events) {
  const std::vector<float> floats(values.begin(), values.end());
  pipeline::StepRecord record;
  record.sums = runtime::Buffer::zeroed(floats.size() * sizeof(std::int64_t));
  const auto sums = record.sums.mutable_as<std::int64_t>();
  for (const auto& tensor : layout.tensors) {
    const auto offset = static_cast<std::size_t>(tensor.offset);
    const auto size = static_cast<std::size_t>(tensor.size);
    const auto part = std::span(floats).subspan(offset, size);
    const auto into = sums.subspan(offset, size);
    const auto measured = model::quantise_add(part, model::kNoExponent, 1, into);
    const std::int16_t scale = measured.max_exponent == model::kNoExponent
                                   ? model::kNoExponent
                                   : model::scale_for(measured.max_exponent, 1);
    std::fill(into.begin(), into.end(), 0);
    model::quantise_add(part, scale, 1, into);
    record.scales.push_back(scale);
    record.header.exponents.push_back(measured.max_exponent);
  }
  record.header.step = step;
  record.header.micro_batches = 1;
  record.header.events = events;
  return record;
}

pipeline::StepRecord Alone::reduce_step(const TrainingState& state,
                                        const std::vector<pipeline::MicroBatch>& micro_batches) {
  const auto iteration = std::make_shared<pipeline::IterationShare>(state.iteration, micro_batches);
  pipeline::StepShare step(*gan_, options_, iteration, state.slot);
  while (computer_.compute(state, step)) {
  }
  std::vector<std::int16_t> scales = state.scales[state.slot];
  Contribution sum = contribution_of(step, 0, scales);
  if (sum.header.flagged) {
    scales = pipeline::scales_after(scales, sum.header, options_.micro_batches);
    sum = contribution_of(step, 1, scales);
  }
  computer_.retire(std::move(step));
  sum.header.state_minimum = sum.header.state_maximum = pipeline::hash_of_state(state);
  return {sum.header, scales, sum.sums, sum.layout.front};
}

void Alone::step(TrainingState& state) {
  std::vector<pipeline::MicroBatch> micro_batches;
  for (std::uint32_t i = 0; i < options_.micro_batches; ++i) {
    micro_batches.push_back(micro_batch(i, 100 + state.iteration * options_.micro_batches + i));
  }
  const auto applied = pipeline::apply(*gan_, options_, reduce_step(state, micro_batches), state);
  CHECK(applied.ok(), applied.ok() ? "" : applied.error().message);
}

TrainingState Alone::initial_state() const {
  return pipeline::initial_state(*gan_, options_, backend_->numerics_class(), {});
}

}  // namespace troupe::training_test
