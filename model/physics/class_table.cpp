#include "model/physics/class_table.h"

#include <limits>
#include <optional>

#include <fmt/format.h>

#include "model/physics/figures_text.h"
#include "model/physics/table.h"
#include "runtime/base/json_text.h"

namespace troupe::model {
namespace {

// What a figure is for samples of the data: their own where that is the ideal, else the floor.
std::optional<double> of_equal(const Figure& figure) {
  if (!figure.value) return std::nullopt;
  return figure.ideal == 0.0 ? figure.floor : figure.ideal;
}

std::string numbers_json(std::span<const Figure> figures,
                         std::optional<double> (*value_of)(const Figure&)) {
  std::string members;
  for (const Figure& figure : figures) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    members += fmt::format("{}\"{}\": {}", members.empty() ? "" : ", ", figure.name,
                           runtime::json_number(value_of(figure).value_or(kNone)));
  }
  return fmt::format("{{{}}}", members);
}

std::string table_line(const std::string& name, const std::string& events,
                       std::span<const std::string> cells) {
  std::string text = fmt::format("{:<10}  {:>7}", name, events);
  for (const std::string& cell : cells) text += fmt::format("  {:>16}", cell);
  return text + "\n";
}

}  // namespace

std::string table_text(const ClassTable& table) {
  std::vector<std::string> names, of_data, of_generated;
  for (std::size_t i = 0; i < table.data.size(); ++i) {
    names.push_back(table.data[i].name);
    Figure equal = table.data[i];
    equal.value = of_equal(equal);
    of_data.push_back(value_text(equal));
    of_generated.push_back(value_text(table.generated[i]));
  }
  const std::string events = fmt::format("{}", table.events);
  return table_line("", "events", names) + table_line("data", events, of_data) +
         table_line("generated", events, of_generated) +
         "By the classifier that judges: Frechet distance of what its last hidden layer has, mean\n"
         "probability of the likeliest class, and difference of the shares of classes. Of the "
         "data:\n"
         "what two samples drawn from them have.\n";
}

std::string table_json(const ClassTable& table) {
  const auto value_of = [](const Figure& figure) { return figure.value; };
  const Figure* const chosen = find_figure(table.generated, table.chosen);
  return fmt::format(
      R"({{"rows": [{{"name": "data", "events": {}, "comparison": null, "floor": {}}}, )"
      R"({{"name": "generated", "events": {}, "comparison": {}, "floor": null, "chosen": {}}}]}})",
      table.events, numbers_json(table.data, of_equal), table.events,
      numbers_json(table.generated, value_of),
      chosen_json(chosen == nullptr ? std::nullopt : std::optional(*chosen)));
}

}  // namespace troupe::model
