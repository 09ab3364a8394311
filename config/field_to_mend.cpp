#include "config/field_to_mend.h"

#include <algorithm>

#include "config/zoo.h"

namespace troupe::config {
namespace {

// Where a default comes from: the nearest section around it that was written.
Place nearest_place(std::string field, const Origins& origins) {
  Place place = place_of(origins, field);
  while (place.is_default() && field.find('.') != std::string::npos) {
    field.resize(field.rfind('.'));
    place = place_of(origins, field);
  }
  return place;
}

}  // namespace

std::string field_to_mend(const std::vector<std::string>& fields, const Origins& origins) {
  CHECK(!fields.empty());
  const auto first = [&](auto&& suits) {
    return std::find_if(fields.begin(), fields.end(), [&](const std::string& field) {
      const Place place = place_of(origins, field);
      return !place.is_default() && !is_from_zoo(place) && suits(place);
    });
  };
  auto found = first([](const Place& place) { return place.line == 0; });
  if (found == fields.end()) found = first([](const Place&) { return true; });
  return found == fields.end() ? fields.front() : *found;
}

void report_rule(const std::vector<std::string>& fields, const std::string& message,
                 Reader& reader) {
  const std::string field = field_to_mend(fields, reader.origins());
  reader.problem_at(field, nearest_place(field, reader.origins()), message);
}

}  // namespace troupe::config
