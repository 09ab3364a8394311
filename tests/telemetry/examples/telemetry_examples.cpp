// telemetry_examples tensorboard|png|metrics FOLDER, telemetry_examples stream ADDRESS: writes what
// tests/telemetry/independent_readers then reads.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "telemetry/history.h"
#include "telemetry/open_metrics.h"
#include "telemetry/record.h"
#include "telemetry/sinks/png.h"
#include "telemetry/sinks/publisher.h"
#include "telemetry/sinks/tensorboard_file.h"

namespace troupe::telemetry {
namespace {

Record step(double time, double loss) {
  return *read_record(
      fmt::format(R"({{"kind":"step","time":{},"step":2,"slot":"g","iteration":0,"events":16,)"
                  R"("losses":{{"generation":{}}},"seconds":{{"compute":0.25}}}})",
                  time, loss));
}

Record begin(double time, std::uint64_t at) {
  return *read_record(fmt::format(
      R"({{"kind":"run","time":{},"step":{},"name":"a \"toy\"\nwith \\ and ü","model":"gan3d_12",)"
      R"("version":"0.1.0","schedule":["d_real","g"],"losses":[["generation",3]],"iterations":100,)"
      R"("node":"head","host":"lab","role":"head","pid":7}})",
      time, at));
}

TensorboardFile open_file(const std::string& folder, double time, std::uint64_t pid) {
  return std::move(
      TensorboardFile::open({.folder = folder, .time = time, .host = "lab", .pid = pid}).value());
}

void write_tensorboard(const std::string& folder) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  TensorboardFile first = open_file(folder, 1760000000.25, 7);
  first.take(begin(1760000000.25, 0));
  first.take(step(1760000000.5, 1.5));
  for (const double odd : {std::nan(""), kInfinity, -kInfinity, 1e300, 0.0})
    first.add(3, 1760000001.0, {scalar_value("odd", odd)});
  first.add(4, 1760000002.0,
            {histogram_value("histogram", histogram_of(0, 9, std::vector<double>(5, 2.0)))});
  Image image{3, 2, {}};
  for (std::uint8_t i = 0; i < 6; ++i) image.samples.push_back(i);
  first.add(4, 1760000002.0, {image_value("image", 3, 2, *png(image))});
  first.add(5, 1760000003.0, {text_value("marks", "member.1 was lost: über \xff")});
  CHECK(first.flush().ok());
  TensorboardFile second = open_file(folder, 1760000100.0, 8);
  second.take(begin(1760000100.0, 2));
  second.take(step(1760000101.0, 1.25));
}

void write_png(const std::string& folder) {
  const auto write = [&](const char* name, Image image) {
    const std::size_t samples = std::size_t{image.width} * image.height;
    for (std::size_t i = 0; i < samples; ++i)
      image.samples.push_back(static_cast<std::uint8_t>(i * i / 7 % 256));
    std::ofstream(folder + "/" + name, std::ios::binary) << *png(image);
  };
  write("wide.png", {301, 200, {}});
  write("narrow.png", {25, 31, {}});
}

void write_metrics(const std::string& folder) {
  History history;
  history.take(begin(1760000000.0, 0));
  history.take(step(1760000001.0, 1.5));
  history.take(*read_record(
      R"({"kind":"validation","step":3,"fields":{"rows":[{"comparison":{"merit":{"total":0.125}}}]}})"));
  history.take(
      *read_record(R"({"kind":"samples","step":3,"values":{"replica.0/\"odd\"":[1,7,7,7,7]}})"));
  NodeSample sample;
  sample.node = "head";
  sample.cpu_seconds = 12.5;
  sample.resident_bytes = 123456789;
  sample.sent_bytes = std::int64_t{1} << 53;
  sample.actors = {{"coordinator", "waiting", 12}};
  sample.links = {{"loader", "replica.0", "batches", 88, 3, 8, 2, 0},
                  {"replica.0", "monitor", "metrics", 88, 0, 0, 0, 1}};
  sample.devices = {{"cuda:0", "card", 1 << 30, 2 << 20, 8 << 20, 0.25, 61.5, -1.0}};
  history.take_node(sample, 1760000002.0, 0.001);
  for (const auto& [name, format] : {std::pair{"openmetrics.txt", MetricsFormat::kOpenMetrics},
                                     {"prometheus.txt", MetricsFormat::kPrometheus}})
    std::ofstream(folder + "/" + name, std::ios::binary) << open_metrics(history, format);
}

// Until it is killed, or half a minute.
void publish(const std::string& address) {
  auto publisher = Publisher::open({.address = address});
  CHECK(publisher.ok());
  for (int i = 0; i < 3000; ++i) {
    (*publisher)->send("node", R"({"kind":"node","step":0})");
    (*publisher)
        ->send("step",
               fmt::format(
                   R"({{"kind":"step","time":1760000000,"step":{},"losses":{{"generation":1.5}}}})",
                   i));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace
}  // namespace troupe::telemetry

int main(int argument_count, char** arguments) {
  using namespace troupe::telemetry;
  if (argument_count != 3) return 2;
  const std::string what = arguments[1], where = arguments[2];
  if (what == "tensorboard") write_tensorboard(where);
  if (what == "png") write_png(where);
  if (what == "metrics") write_metrics(where);
  if (what == "stream") publish(where);
  return 0;
}
