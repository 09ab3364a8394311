#include "model/program.h"

#include "model/program_content.h"

namespace troupe::model {
namespace {

std::size_t number(Pass pass) { return static_cast<std::size_t>(pass); }

template <class T>
DataType type_of() {
  return sizeof(T) == sizeof(float) ? DataType::kFloat32 : DataType::kFloat64;
}

template <class Item>
const Item& item(const std::vector<Item>& items, int index) {
  CHECK(index >= 0 && index < static_cast<int>(items.size()), "no output has this index");
  return items[static_cast<std::size_t>(index)];
}

// One pointer per Location. Kernels write only where their instruction says so.
std::array<std::byte*, kLocations> bases(const Bindings& bindings, std::byte* arena) {
  const auto bytes = [](const void* pointer) {
    return static_cast<std::byte*>(const_cast<void*>(pointer));
  };
  return {nullptr,
          arena,
          bytes(bindings.weights),
          bytes(bindings.moving),
          bytes(bindings.gradients),
          bytes(bindings.statistics),
          bytes(bindings.shared),
          bytes(bindings.shares)};
}

}  // namespace

Workspace::Workspace(const Program& program)
    : program_(&program),
      arena_(program.memory().allocate(program.arena_bytes())),
      scratch_(program.memory().allocate(program.scratch_bytes())) {}

void Workspace::compute_with(runtime::ThreadTeam* team, std::span<Workspace* const> others) {
  team_ = team;
  scratches_.assign(1, scratch());
  for (Workspace* other : others) {
    CHECK(other->program_ == program_, "the workspace belongs to another program");
    scratches_.push_back(other->scratch());
  }
  CHECK(team == nullptr || scratches_.size() == static_cast<std::size_t>(team->threads()),
        "scratch memory for each thread");
}

Program::Program(std::unique_ptr<Content> content) : content_(std::move(content)) {}
Program::~Program() = default;

void Program::run(Pass pass, const Bindings& bindings, Workspace& workspace) const {
  CHECK(workspace.program_ == this, "the workspace belongs to another program");
  CHECK(content_->lists.compiled[number(pass)], "this pass was not compiled");
  const bool forward = pass == Pass::kForwardTraining || pass == Pass::kForwardInference;
  CHECK(forward || workspace.ready_for_backward_,
        "a backward pass runs once, right after the forward pass in training");
  // A backward pass may overwrite tensors that the forward pass kept for it, so it runs once. What
  // a round has begun is still to come to its end.
  const bool ends = bindings.round < 0;
  workspace.ready_for_backward_ = forward ? pass == Pass::kForwardTraining && ends : !ends;

  const auto base = bases(bindings, workspace.arena());
  for (std::size_t i = 1; i < base.size(); ++i) {
    const bool is_used = content_->reads_or_writes[number(pass)][i] &&
                         (bindings.round >= 0 || i != static_cast<std::size_t>(Location::kShares));
    CHECK(base[i] != nullptr || !is_used, "the pass needs a binding that is not set");
  }
  CHECK(bindings.group.count <= content_->group, "no more micro-batches than there is memory for");
  std::byte* const scratch = workspace.scratch();
  // The loop over the calls is all of a pass: offsets, kernels and order were fixed by the
  // compiler.
  std::int64_t told = content_->parameters.weights_size;
  const std::vector<Call>& calls = content_->calls[number(pass)];
  std::size_t& next = workspace.next_call_;
  if (!bindings.resumes) next = 0;
  while (next < calls.size()) {
    const Call& call = calls[next++];
    if (call.round >= 0 && call.round != bindings.round) continue;
    std::array<void*, kMostOperands> operands;
    for (std::size_t i = 0; i < call.operand_count; ++i) {
      const Place& place = call.operands[i];
      std::byte* const start = base[static_cast<std::size_t>(place.location)];
      operands[i] = start == nullptr ? nullptr : start + place.bytes;
    }
    const std::span<void* const> used(operands.data(), call.operand_count);
    if (!content_->memory->is_of_host()) {
      std::array<std::int64_t, kMostOperands> strides;
      for (std::size_t i = 0; i < call.operand_count; ++i) {
        strides[i] = stride(call.operands[i], bindings);
      }
      call.kernel->run_group(used, {strides.data(), call.operand_count}, bindings.random,
                             bindings.group, scratch);
    } else if (workspace.team_ == nullptr) {
      call.kernel->run(used, bindings.random, scratch);
    } else {
      const Crew crew(*workspace.team_, workspace.scratches_);
      call.kernel->run_together(used, bindings.random, crew);
    }
    if (bindings.gradients_final != nullptr && pass == Pass::kBackwardParameters &&
        call.gradients_final_from < told) {
      told = call.gradients_final_from;
      (*bindings.gradients_final)(told);
    }
    if (call.round >= 0 && (next == calls.size() || calls[next].round != call.round)) return;
  }
}

template <class T>
std::span<T> Program::tensor(Workspace& workspace, int index) const {
  CHECK(workspace.program_ == this, "the workspace belongs to another program");
  CHECK(content_->data_type == type_of<T>(), "the program computes in another data type");
  const auto i = static_cast<std::size_t>(index);
  CHECK(!content_->lives[i].live.empty(), "no compiled pass has this tensor");
  return {reinterpret_cast<T*>(workspace.arena() + content_->plan.offsets[i]),
          static_cast<std::size_t>(content_->lists.tensors[i].elements * content_->group)};
}

template <class T>
std::span<T> Program::input(Workspace& workspace) const {
  return tensor<T>(workspace, content_->lists.input);
}
template <class T>
std::span<T> Program::conditions(Workspace& workspace) const {
  CHECK(content_->lists.conditions >= 0, "the network has conditions");
  return tensor<T>(workspace, content_->lists.conditions);
}
template <class T>
std::span<T> Program::columns(Workspace& workspace) const {
  CHECK(content_->lists.columns >= 0, "the network has columns");
  return tensor<T>(workspace, content_->lists.columns);
}
template <class T>
std::span<const T> Program::output(Workspace& workspace, int index) const {
  return tensor<T>(workspace, item(content_->lists.outputs, index));
}
template <class T>
std::span<T> Program::output_gradient(Workspace& workspace, int index) const {
  return tensor<T>(workspace, item(content_->lists.output_gradients, index));
}
template <class T>
std::span<const T> Program::input_gradient(Workspace& workspace) const {
  return tensor<T>(workspace, content_->lists.input_gradient);
}
template <class T>
std::span<const T> Program::columns_gradient(Workspace& workspace) const {
  CHECK(content_->lists.columns_gradient >= 0, "the network has columns");
  return tensor<T>(workspace, content_->lists.columns_gradient);
}

template std::span<float> Program::input(Workspace&) const;
template std::span<double> Program::input(Workspace&) const;
template std::span<float> Program::conditions(Workspace&) const;
template std::span<double> Program::conditions(Workspace&) const;
template std::span<float> Program::columns(Workspace&) const;
template std::span<double> Program::columns(Workspace&) const;
template std::span<const float> Program::output(Workspace&, int) const;
template std::span<const double> Program::output(Workspace&, int) const;
template std::span<float> Program::output_gradient(Workspace&, int) const;
template std::span<double> Program::output_gradient(Workspace&, int) const;
template std::span<const float> Program::input_gradient(Workspace&) const;
template std::span<const double> Program::input_gradient(Workspace&) const;
template std::span<const float> Program::columns_gradient(Workspace&) const;
template std::span<const double> Program::columns_gradient(Workspace&) const;

const ParameterLayout& Program::parameters() const { return content_->parameters; }
const NetworkShapes& Program::shapes() const { return content_->shapes; }
const NetworkDescription& Program::network() const { return content_->network; }
int Program::outputs() const { return static_cast<int>(content_->shapes.outputs.size()); }
std::int64_t Program::stride(const Place& place, const Bindings& bindings) {
  const bool written =
      place.location == Location::kGradients || place.location == Location::kStatistics;
  return written                               ? bindings.group.stride
         : place.location == Location::kShares ? bindings.shares_stride
                                               : place.stride;
}

Memory& Program::memory() const { return *content_->memory; }
std::int64_t Program::group() const { return content_->group; }
std::int64_t Program::batch() const { return content_->batch; }
DataType Program::data_type() const { return content_->data_type; }
std::size_t Program::arena_bytes() const { return content_->plan.bytes; }
std::size_t Program::scratch_bytes() const { return content_->scratch_bytes; }
Shape Program::input_shape() const { return content_->network.input; }

Shape Program::output_shape(int index) const {
  const int layer = item(content_->shapes.outputs, index);
  return content_->shapes.layers[static_cast<std::size_t>(layer)];
}

int Program::find_output(const std::string& name) const {
  for (int i = 0; i < outputs(); ++i) {
    const int layer = content_->shapes.outputs[static_cast<std::size_t>(i)];
    if (content_->network.layers[static_cast<std::size_t>(layer)].name == name) return i;
  }
  return -1;
}

}  // namespace troupe::model
