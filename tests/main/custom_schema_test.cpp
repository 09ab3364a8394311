// Models of data in a custom schema, and of angles that their data may not have.

#include <gmock/gmock.h>

#include <numbers>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// The toy asked for energy and angle, on data of which each is at 90 degrees.
class CustomSchema : public ToyRun {
 protected:
  CustomSchema() {
    pipeline::Hdf5Scribe scribe(path("toy.h5"));
    const ToyData data(200);
    scribe.add("ECAL", {200, 4, 4, 4}, data.cells);
    scribe.add("target", {200, 2}, data.target);
    scribe.add("theta", {200}, std::vector<float>(200, std::numbers::pi_v<float> / 2));
  }

  JsonValue generate(const std::string& name, const Words& more = {}) const {
    Words words =
        Words{"generate", checkpoint(name, 0), "--out", path(name + ".h5"), "--events", "20",
              "--force"} +
        more;
    const ProcessEnd end = call(words);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return last_line(call({"data", "info", path(name + ".h5"), "--json"}));
  }

  const Words custom_{"--set", "data.schema=custom",
                      "--set", "data.names={energy: target, energy_column: 1}",
                      "--set", "model.generator.latent.conditions=[energy, angle]",
                      "--set", "train.iterations=2"};
};

TEST_F(CustomSchema, GeneratesInTheSchemaThatHoldsWhatTheModelKnows) {
  // The same training: where no angle is named it is 90 degrees.
  summary_of("angle", custom_ + Words{"--set", "data.names.angle=theta"});
  summary_of("fixed", custom_);

  const JsonValue fixed = generate("fixed");
  EXPECT_EQ(fixed["schema"].text(), "lcd-fixed");
  const JsonValue angle = generate("angle");
  EXPECT_EQ(angle["schema"].text(), "lcd-angle");
  EXPECT_NEAR(angle["ecal"]["mean"].number(), 50.0 * fixed["ecal"]["mean"].number(),
              1e-3 * angle["ecal"]["mean"].number());
  EXPECT_NEAR(generate("angle", {"--angle", "60"})["theta_rad"]["min"].number(),
              std::numbers::pi / 3, 1e-5);
  expect_refused(call({"generate", checkpoint("fixed", 0), "--out", path("x.h5"), "--angle", "60"}),
                 2, {"--angle: this model was trained without angles"});
}

}  // namespace
}  // namespace troupe
