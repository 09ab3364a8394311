// The section `train.stop`.

#include <algorithm>
#include <string>
#include <string_view>

#include "config/list_codecs.h"
#include "config/scalar_codecs.h"
#include "config/topology_fields.h"

namespace troupe::config {
namespace {

using pipeline::StoppingOptions;

constexpr const char* kTheNetwork = "network";  // of a task that has one

StoppingOptions usual_stop(bool has_network) {
  if (!has_network) return {.network = pipeline::kGenerator};
  return {.network = pipeline::kDiscriminator, .whose = kTheNetwork};
}

constexpr std::string_view kOfValidator = "validator/";

// "g", "d" ("network" of a task that has one), a term of one of them such as "d/generation", or a
// figure of the validator.
CodecOf<StoppingOptions> stop_metric() {
  const std::string what =
      "g, d or network, a term of one such as d/generation, or validator/ and a figure";
  const CodecOf<std::string> content = text(what, "(g|d|network)(/[^/]+)?|validator/.+");
  const auto word_of = [](const StoppingOptions& options) -> std::string {
    if (!options.figure.empty()) return std::string(kOfValidator) + options.figure;
    if (!options.whose.empty()) return options.whose;
    return options.network == pipeline::kGenerator ? "g" : "d";
  };
  return codec_of<StoppingOptions>(
      content->describe(),
      [content, word_of](const YamlValue& value, StoppingOptions& into, Reader& reader) {
        std::string given = word_of(into);
        content->read(value, given, reader);
        into.figure = into.term = "";
        if (given.starts_with(kOfValidator)) {
          into.figure = given.substr(kOfValidator.size());
          return;
        }
        const std::size_t slash = std::min(given.find('/'), given.size());
        const std::string network = given.substr(0, slash);
        // Networks are those of the task.
        const bool has_network = !into.whose.empty();
        if ((network == kTheNetwork) != has_network) {
          return reader.expected(
              value,
              has_network
                  ? "network, a term of it such as network/kind, or a figure: validator/loss or "
                    "validator/kind/accuracy of a supervised task, one such as validator/merit of "
                    "diffusion"
                  : "g or d, a term of one such as d/generation, or validator/merit");
        }
        if (network == "d") into.network = pipeline::kDiscriminator;
        if (network == "g") into.network = pipeline::kGenerator;
        into.term = slash < given.size() ? given.substr(slash + 1) : "";
      },
      [content, word_of](const StoppingOptions& options, Selection selection) {
        const std::string word = word_of(options);
        return content->write(options.term.empty() ? word : word + "/" + options.term, selection);
      });
}

// What the state remembers is of the state; when that ends training may change in a resumed run.
RecordOf<StoppingOptions> stop_record() {
  using Options = StoppingOptions;
  auto record = std::make_shared<Record<Options>>("when training ends early");
  record
      ->field(
          "metric", within(), stop_metric(), Scope::kState,
          "What decides: the mean loss over an epoch, of all steps of the generator, the "
          "discriminator or the network of a task that has one, which is meant there if nothing "
          "is given, with the weights of all terms, or of one term without its weight; or how "
          "far from its ideal each validation finds a figure, a word of "
          "`actors.validator.best`.")
      .field("smoothing", &Options::smoothing, number(NumberRange{0.0, 0.999999, false}),
             Scope::kState, "Share of the value before in the value of an epoch or validation.")
      .field("min_delta", &Options::min_delta, number(NumberRange{.least = 0.0}), Scope::kState,
             "The least fall that counts as an improvement.")
      .field("patience", &Options::patience, integer<std::uint32_t>(0, 1'000'000), Scope::kFree,
             "Epochs, or validations, without improvement after which training ends; 0: they do "
             "not end it.")
      .field("target", &Options::target, optional(number()), Scope::kFree,
             "A value as low as this ends training.")
      .check([](const YamlValue&, const Options& options, Reader& reader) {
        if (options.patience > 0 || options.target) return;
        reader.broken_rule({reader.path() + ".patience", reader.path() + ".target"},
                           "give patience of at least 1, target, or both: nothing ends training");
      });
  return record;
}

}  // namespace

// The networks are those of the task.
CodecOf<Topology> stop_codec() {
  const auto content = optional(CodecOf<StoppingOptions>(stop_record()));
  return codec_of<Topology>(
      content->describe(),
      [content](const YamlValue& value, Topology& into, Reader& reader) {
        auto& given = into.train.options.stop;
        if (value.is_null()) return;
        if (!given) given = usual_stop(has_network(into));
        content->read(value, given, reader);
      },
      [content](const Topology& topology, Selection selection) {
        return content->write(topology.train.options.stop, selection);
      });
}

}  // namespace troupe::config
