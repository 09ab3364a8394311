#include "pipeline/data/generation.h"

#include <algorithm>
#include <utility>

#include "model/streams.h"

namespace troupe::pipeline {
namespace {

constexpr std::int64_t kBatch = 16;

// The value of each condition of an event, where it stands in the request.
std::vector<const float*> conditions_of(const model::LatentDescription& latent,
                                        const GenerationRequest& request, std::size_t event) {
  const std::vector<std::string> columns = model::columns_of(latent);
  CHECK(request.columns.size() == columns.size(), "every column of the model has values");
  std::vector<const float*> values;
  for (const std::string& condition : latent.conditions) {
    const std::span<const float> all = model::numbers_of(
        condition, request.energies, request.angles, [&](const std::string& name) {
          const auto column = std::ranges::find(columns, name) - columns.begin();
          return request.columns.at(static_cast<std::size_t>(column));
        });
    CHECK(event < all.size(), "every condition has a value for each event");
    values.push_back(&all[event]);
  }
  return values;
}

}  // namespace

GenerationRequest part_of(const GenerationRequest& all, std::size_t first, std::size_t count) {
  GenerationRequest part = all;
  part.energies = all.energies.subspan(first, count);
  if (!all.angles.empty()) part.angles = all.angles.subspan(first, count);
  for (auto& column : part.columns) column = column.subspan(first, count);
  part.first_event = all.first_event + first;
  const std::size_t made = all.made.size() / std::max<std::size_t>(all.energies.size(), 1);
  part.made = all.made.subspan(first * made, count * made);
  return part;
}

runtime::RandomPosition event_position(std::uint64_t seed, std::uint64_t event,
                                       std::uint32_t stream) {
  return {seed, static_cast<std::uint32_t>(event), static_cast<std::uint32_t>(event >> 32), 0,
          stream};
}

ShowerMaker::ShowerMaker(const model::GanDescription& model,
                         std::unique_ptr<const model::Program> program, runtime::ThreadTeam& team)
    : model_(model),
      program_(std::move(program)),
      team_(team),
      batch_(static_cast<std::size_t>(kBatch * program_->group())) {
  for (int i = 0; i < team.threads(); ++i) workspaces_.emplace_back(*program_);
  model::Memory& memory = program_->memory();
  if (memory.is_of_host()) return;
  const auto place = [&](std::int64_t elements) {
    return memory.allocate(static_cast<std::size_t>(elements) * sizeof(float));
  };
  weights_ = place(program_->parameters().weights_size);
  moving_ = place(program_->parameters().moving_size);
}

runtime::Result<std::unique_ptr<ShowerMaker>> ShowerMaker::create(
    const model::GanDescription& model, const model::Backend& backend, runtime::ThreadTeam& team) {
  model::ProgramOptions options;
  options.batch = kBatch;
  options.forward_training = false;
  options.backward_parameters = false;
  options.backward_input = false;
  const auto maker =
      model::maker_of(model.task, model::computed_generator(model), model.discriminator);
  ASSIGN_OR_RETURN(auto program, model::Program::compile(maker, backend, options));
  return std::unique_ptr<ShowerMaker>(new ShowerMaker(model, std::move(program), team));
}

std::size_t ShowerMaker::make(std::span<const float> weights, std::span<const float> moving,
                              const GenerationRequest& request, std::span<float> images,
                              const std::function<bool(std::size_t done)>& going_on) {
  const std::size_t events = request.energies.size();
  CHECK(images.size() == events * static_cast<std::size_t>(cells()));
  CHECK(request.made.empty() || request.made.size() == events * columns(),
        "a number for each column and event");
  model::Bindings parameters;
  parameters.weights = weights.data();
  parameters.moving = moving.data();
  if (model::Memory& memory = program_->memory(); !memory.is_of_host()) {
    memory.write(weights.data(), weights_.get(), weights.size_bytes());
    memory.write(moving.data(), moving_.get(), moving.size_bytes());
    parameters.weights = weights_.get();
    parameters.moving = moving_.get();
  }
  const auto cells = static_cast<std::size_t>(this->cells());
  const std::size_t turn = batch_ * workspaces_.size();
  std::size_t done = 0;
  const auto asked = [&] { return !going_on || going_on(done); };
  while (done < events) {
    const std::size_t count = std::min(turn, events - done);
    const std::span<float> own = images.subspan(done * cells, count * cells);
    if (model_.task == model::Task::kDiffusion) {
      if (!denoise(parameters, request, done, own, asked)) break;
    } else {
      run_batches(count, [&](std::size_t first, std::size_t size, model::Workspace& workspace) {
        generate_batch(parameters, request, done + first, own.subspan(first * cells, size * cells),
                       workspace);
      });
    }
    done += count;
    if (!asked()) break;
  }
  return done;
}

void ShowerMaker::run_batches(std::size_t events, const BatchWork& work) {
  team_.run(static_cast<std::int64_t>((events + batch_ - 1) / batch_), [&](std::int64_t i,
                                                                           int thread) {
    const std::size_t first = static_cast<std::size_t>(i) * batch_;
    work(first, std::min(batch_, events - first), workspaces_[static_cast<std::size_t>(thread)]);
  });
}

// A batch is computed whole. Its places behind the last event have zeros, and their images are not
// taken.
void ShowerMaker::compute(const model::Bindings& parameters, std::span<const float> input,
                          std::span<float> outputs, model::Workspace& workspace) const {
  model::Memory& memory = program_->memory();
  memory.write(input.data(), program_->input<float>(workspace).data(), input.size_bytes());
  model::Bindings bindings = parameters;
  bindings.group.count = program_->group();
  program_->run(model::Pass::kForwardInference, bindings, workspace);
  memory.read(program_->output<float>(workspace, 0).data(), outputs.data(), outputs.size_bytes());
}

void ShowerMaker::generate_batch(const model::Bindings& parameters,
                                 const GenerationRequest& request, std::size_t first,
                                 std::span<float> images, model::Workspace& workspace) const {
  const std::size_t events = images.size() / static_cast<std::size_t>(cells());
  std::vector<float> latent(batch_ * static_cast<std::size_t>(model_.latent.size));
  for (std::size_t i = 0; i < events; ++i) {
    const std::size_t event = first + i;
    const auto position =
        event_position(request.seed, request.first_event + event, model::kValidationStream);
    model::make_latent(model_.latent, conditions_of(model_.latent, request, event), 1, position,
                       latent.data() + i * static_cast<std::size_t>(model_.latent.size));
  }
  compute(parameters, latent, images, workspace);
  if (request.made.empty()) return;
  const std::span<float> made = request.made.subspan(first * columns(), events * columns());
  program_->memory().read(program_->output<float>(workspace, 1).data(), made.data(),
                          made.size_bytes());
}

// The images are the noise they begin with until the last step has been taken.
bool ShowerMaker::denoise(const model::Bindings& parameters, const GenerationRequest& request,
                          std::size_t first, std::span<float> images,
                          const std::function<bool()>& going_on) {
  const auto cells = static_cast<std::size_t>(this->cells());
  const std::size_t events = images.size() / cells;
  std::vector<std::vector<float>> conditions(events);
  for (std::size_t i = 0; i < events; ++i) {
    for (const float* value : conditions_of(model_.latent, request, first + i)) {
      conditions[i].push_back(*value);
    }
  }
  run_batches(events, [&](std::size_t from, std::size_t size, model::Workspace&) {
    for (std::size_t i = from; i < from + size; ++i) {
      runtime::fill_normal(
          event_position(request.seed, request.first_event + first + i, model::kValidationStream),
          images.data() + i * cells, static_cast<std::uint32_t>(cells));
    }
  });
  std::vector<float> before(images.size());
  bool begun = false;
  for (const model::SamplerStep& step : model::sampler_steps(model_.diffusion.steps)) {
    if (begun && !going_on()) return false;
    run_batches(events, [&](std::size_t from, std::size_t size, model::Workspace& workspace) {
      denoise_batch(parameters, step, std::span(conditions).subspan(from, size),
                    images.subspan(from * cells, size * cells),
                    std::span(before).subspan(from * cells, size * cells), workspace);
    });
    begun = true;
  }
  return true;
}

void ShowerMaker::denoise_batch(const model::Bindings& parameters, const model::SamplerStep& step,
                                std::span<const std::vector<float>> conditions,
                                std::span<float> images, std::span<float> before,
                                model::Workspace& workspace) const {
  const auto cells = static_cast<std::size_t>(this->cells());
  const auto values = static_cast<std::size_t>(program_->input_shape().elements());
  std::vector<float> input(batch_ * values), velocity(images.size());
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    model::write_denoiser_input<float>(images.subspan(i * cells, cells), shape().channels,
                                       step.at.level, conditions[i], input.data() + i * values);
  }
  compute(parameters, input, velocity, workspace);
  model::take_step(step, velocity, images, before);
}

model::ImageUnits image_units(const DatasetOptions& options) {
  CHECK(options.preprocessing.has_value());
  const double stored = facts_of(options.schema).units_per_gev;
  return {options.preprocessing->power, stored * static_cast<double>(options.preprocessing->scale)};
}

}  // namespace troupe::pipeline
