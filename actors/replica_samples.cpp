// What a Replica tells of a step besides its line: numbers for curves.

#include "actors/replica.h"
#include "pipeline/steps/gradient_norm.h"
#include "pipeline/steps/state_layout.h"

namespace troupe::actors {

using runtime::Context;

// Of a step that was made with the others.
void Replica::tell_samples(Context& context, const pipeline::StepRecord& record,
                           const StepMetrics& step) {
  if (view_ == nullptr || !samples_.is_heard()) return;
  samples_.add(context, "compute_seconds", step.compute_seconds);
  samples_.add(context, "load_seconds", step.load_seconds);
  samples_.add(context, "batches_ahead", static_cast<double>(batches_.ahead()));
  if (leads_) tell_gradient(context, record, step.slot);
  samples_.tell(context);
}

// All replicas have the same sums, so one tells. Quick steps are not held up by it.
void Replica::tell_gradient(Context& context, const pipeline::StepRecord& record,
                            std::uint32_t slot) {
  const model::SlotKind kind = training_.options.schedule[slot];
  const std::size_t network = pipeline::updated_network(kind);
  auto& told = gradient_told_.at(network);
  const runtime::TimePoint now = context.now();
  if (told && now - *told < kTellEvery) return;
  told = now;
  samples_.add(
      context,
      network == pipeline::kGenerator ? "gradient_norm/generator" : "gradient_norm/discriminator",
      pipeline::gradient_norm(training_.gan.contributions(kind), record,
                              training_.options.micro_batches));
}

}  // namespace troupe::actors
