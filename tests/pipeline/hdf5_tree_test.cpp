#include "pipeline/checkpoint/hdf5_tree.h"

#include <gtest/gtest.h>

#include "pipeline/data/hdf5_writer.h"

namespace troupe::pipeline {
namespace {

runtime::Buffer file_of(const std::string& value) {
  Hdf5Writer writer(Hdf5Writer::Order::kAsMade);
  writer.add_text("text", value);
  auto image = writer.image(0);
  CHECK(image.ok(), image.ok() ? "" : image.error().message);
  return std::move(image).value();
}

std::string text_of(Hdf5TreeReader& reader) {
  std::string text;
  reader.read_text("text", text);
  EXPECT_TRUE(reader.result().ok()) << reader.result().error().message;
  return text;
}

// The library takes files in memory for one if they have one name.
TEST(Hdf5Tree, FilesInMemoryAtTheSameTimeAreFilesOfTheirOwn) {
  const runtime::Buffer one = file_of("one");
  const runtime::Buffer other = file_of("other");
  Hdf5TreeReader first(one.bytes(), "one.h5");
  Hdf5TreeReader second(other.bytes(), "other.h5");
  EXPECT_EQ(text_of(second), "other");
  EXPECT_EQ(text_of(first), "one");
  const runtime::Buffer third = file_of("third");
  EXPECT_EQ(text_of(first), "one");
  Hdf5TreeReader last(third.bytes(), "third.h5");
  EXPECT_EQ(text_of(last), "third");
}

}  // namespace
}  // namespace troupe::pipeline
