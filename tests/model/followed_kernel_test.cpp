// Elementwise kernels that follow another one part by part.

#include "model/followed_kernel.h"

#include <mutex>

#include <gtest/gtest.h>

#include "model/program.h"
#include "tests/model/example_networks.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

constexpr runtime::RandomPosition kRandom{.seed = 7, .iteration = 3};

std::vector<void*> pointers(Operands<float>& operands) {
  std::vector<void*> all;
  for (auto& operand : operands) all.push_back(operand.empty() ? nullptr : operand.data());
  return all;
}

// Memory of a kernel, for each of several threads.
class Scratch {
 public:
  Scratch(const Kernel& kernel, int threads) {
    for (int i = 0; i < threads; ++i) {
      memory_.push_back(host_memory().allocate(kernel.scratch_bytes()));
      places_.push_back(memory_.back().get());
    }
  }
  std::span<std::byte* const> places() const { return places_; }

 private:
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::vector<std::byte*> places_;
};

// An operation that makes an image, operands for it, and what changes the image.
struct Chain {
  Operation first;
  std::vector<Operation> followers;
};

Chain forward_chain(Draw& draw) {
  const ConvolutionGeometry g = random_geometry(draw);
  const std::int64_t elements = g.batch * g.out[0] * g.out[1] * g.out[2] * g.out_channels;
  return {ConvolutionForward{g, {ActivationKind::kLeakyRelu, 0.3}},
          {DropoutForward{elements, 0.3, 5}}};
}
Chain backward_chain(Draw& draw) {
  const ConvolutionGeometry g = random_geometry(draw);
  const std::int64_t elements = g.batch * g.in[0] * g.in[1] * g.in[2] * g.in_channels;
  return {ConvolutionBackwardInput{g},
          {DropoutBackward{elements, 0.3, 5},
           ActivationBackward{elements, {ActivationKind::kLeakyRelu, 0.3}}}};
}

// Runs the chain one kernel after the other, then as one, by several threads. False if the first
// tells no parts.
bool expect_same_bits(const Backend& backend, const Chain& chain, std::uint64_t seed) {
  std::unique_ptr<const Kernel> whole = std::move(*backend.make_kernel(chain.first));
  if (!whole->tells_parts()) return false;
  Draw draw(seed);
  const Operands<float> given = converted<float>(random_operands(chain.first, draw));
  const auto known = converted<float>({draw.contents({"y", std::ssize(given.back())})});
  const auto operands_behind = [&](Operands<float>& operands) {
    Operands<float>& all = operands;
    std::vector<void*> result = pointers(all);
    for (const Operation& each : chain.followers) {
      if (std::holds_alternative<ActivationBackward>(each)) {
        result.push_back(const_cast<float*>(known[0].data()));
      }
      result.insert(result.end(), 2, all.back().data());
    }
    return result;
  };

  Operands<float> apart = given;
  run_kernel(*whole, apart, kRandom);
  std::size_t count = given.size();
  const std::vector<void*> places = operands_behind(apart);
  for (const Operation& each : chain.followers) {
    std::unique_ptr<const Kernel> follower = std::move(*backend.make_kernel(each));
    EXPECT_TRUE(follower->runs_elements());
    const std::size_t operands = std::holds_alternative<ActivationBackward>(each) ? 3 : 2;
    follower->run(std::span(places).subspan(count, operands), kRandom, nullptr);
    whole = std::make_unique<FollowedKernel>(std::move(whole), count, std::move(follower));
    count += operands;
  }

  for (const int threads : {1, 3}) {
    runtime::ThreadTeam team(threads, [&] { backend.prepare_thread(); });
    Operands<float> together = given;
    const Scratch scratch(*whole, threads);
    std::mutex mutex;
    std::vector<int> told(together.back().size(), 0);
    whole->run_in_parts(operands_behind(together), kRandom, Crew(team, scratch.places(), 0.0),
                        [&](const ElementRange& part) {
                          const std::scoped_lock lock(mutex);
                          for (std::int64_t i = part.begin; i < part.end; ++i)
                            ++told.at(static_cast<std::size_t>(i));
                        });
    EXPECT_TRUE(same_bits({together.back()}, {apart.back()})) << "seed " << seed;
    EXPECT_EQ(told, std::vector<int>(told.size(), 1)) << "seed " << seed;
  }
  return true;
}

TEST(FollowedKernel, GivesTheBitsOfOneKernelAfterTheOther) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const auto backend = make_portable_backend(precision);
    if (!backend.ok()) GTEST_SKIP() << backend.error().message;
    (*backend)->prepare_thread();
    int followed = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      Draw draw(seed);
      followed += expect_same_bits(**backend, forward_chain(draw), seed) ? 1 : 0;
      followed += expect_same_bits(**backend, backward_chain(draw), seed) ? 1 : 0;
    }
    EXPECT_GT(followed, 60);
  }
}

// Blocks of random numbers are for four elements, vectors for more.
TEST(FollowedKernel, DropoutOfAnyElementsIsThatOfAll) {
  const auto backend = make_portable_backend();
  if (!backend.ok()) GTEST_SKIP() << backend.error().message;
  (*backend)->prepare_thread();
  constexpr std::int64_t kElements = 203;
  const auto kernel = std::move(*(*backend)->make_kernel(DropoutForward{kElements, 0.4, 2}));
  Operands<float> all{std::vector<float>(kElements, 1.5f), std::vector<float>(kElements)};
  run_kernel(*kernel, all, kRandom);
  for (std::int64_t begin = 0; begin < 70; ++begin) {
    for (std::int64_t end = begin; end <= kElements; end += 1 + begin % 5) {
      Operands<float> part{all[0], std::vector<float>(kElements, -1.0f)};
      kernel->run_elements(pointers(part), kRandom, {begin, end});
      std::vector<float> expected(kElements, -1.0f);
      std::copy(all[1].begin() + begin, all[1].begin() + end, expected.begin() + begin);
      ASSERT_EQ(part[1], expected) << begin << " to " << end;
    }
  }
}

// Kernels that compute nothing, and note by which call each of them was run.
class NotingBackend final : public Backend {
 public:
  DataType data_type() const override { return DataType::kFloat32; }
  std::string numerics_class() const override { return "notes"; }
  void prepare_thread() const override {}
  runtime::Result<std::unique_ptr<Kernel>> make_kernel(const Operation& operation) const override {
    return std::unique_ptr<Kernel>(std::make_unique<NotingKernel>(operation, notes_));
  }
  std::vector<std::string>& notes() const { return notes_; }

 private:
  class NotingKernel final : public Kernel {
   public:
    NotingKernel(const Operation& operation, std::vector<std::string>& notes)
        : operation_(operation), notes_(notes) {}
    void run(std::span<void* const>, const runtime::RandomPosition&, std::byte*) const override {
      note("");
    }
    bool tells_parts() const override {
      return std::holds_alternative<ConvolutionForward>(operation_) ||
             std::holds_alternative<ConvolutionBackwardInput>(operation_);
    }
    void run_in_parts(std::span<void* const>, const runtime::RandomPosition&, const Crew&,
                      const PartDone& part_done) const override {
      note(" in parts");
      part_done({0, 1});
    }
    bool runs_elements() const override { return is_elementwise(operation_); }
    void run_elements(std::span<void* const>, const runtime::RandomPosition&,
                      const ElementRange&) const override {
      note(" of a part");
    }

   private:
    void note(const std::string& how) const { notes_.push_back(operation_name(operation_) + how); }

    const Operation operation_;
    std::vector<std::string>& notes_;
  };

  mutable std::vector<std::string> notes_;
};

// A convolution, LeakyReLU and dropout, before another convolution.
TEST(FollowedKernel, ProgramsFollowConvolutionsWhereAnImageIsChangedInPlace) {
  NetworkDescription network{"n", Shape::image({5, 5, 5}, 2), {}, {"last"}};
  network.layers = {layer("first", convolution(2, {3, 3, 3}, Padding::kSame)),
                    layer("leaky", Activation{ActivationKind::kLeakyRelu, 0.3}),
                    layer("drop", Dropout{0.2}),
                    layer("last", convolution(2, {3, 3, 3}, Padding::kSame))};
  const NotingBackend backend;
  ProgramOptions options;
  options.batch = 2;
  const auto program = std::move(*Program::compile(network, backend, options));
  Workspace workspace(*program);
  std::vector<float> numbers(static_cast<std::size_t>(program->parameters().size()));
  Bindings bindings;
  bindings.weights = bindings.gradients = numbers.data();
  const auto run = [&](Pass pass) {
    backend.notes().clear();
    program->run(pass, bindings, workspace);
    return backend.notes();
  };
  using Notes = std::vector<std::string>;
  EXPECT_EQ(
      run(Pass::kForwardTraining),
      (Notes{"convolution_forward in parts", "dropout_forward of a part", "convolution_forward"}));
  EXPECT_EQ(run(Pass::kBackwardParameters),
            (Notes{"convolution_backward_parameters", "convolution_backward_input in parts",
                   "dropout_backward of a part", "activation_backward of a part",
                   "convolution_backward_parameters"}));
}

}  // namespace
}  // namespace troupe::model
