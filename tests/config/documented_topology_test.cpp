// The topologies in the documents are right: every ```yaml block is a topology file, or a section
// of one.

#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

struct Block {
  std::string text;
  int line = 0;  // of the fence above it
};

std::vector<Block> yaml_blocks(const std::string& path) {
  std::istringstream text(read_text(path));
  std::vector<Block> blocks;
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (line == "```yaml") {
      blocks.push_back({"", number});
      inside = true;
    } else if (line.starts_with("```")) {
      inside = false;
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

// What is wrong with a block; sections are completed by those that every file has.
std::string problems_of(const Block& block) {
  Problems problems;
  const YamlValue root = parse_yaml(block.text, "block", problems);
  std::string text = block.text;
  if (root.find("model") == nullptr) text += "model: {zoo: toy}\n";
  if (root.find("data") == nullptr) text += "data: {train: a.h5}\n";
  return message_of(parse(text));
}

TEST(DocumentedTopologies, AreRight) {
  std::vector<std::string> documents;
  for (const char* folder : {"", "docs", "docs/launching"}) {
    for (const auto& entry : std::filesystem::directory_iterator(source_path(folder))) {
      if (entry.path().extension() == ".md") documents.push_back(entry.path().string());
    }
  }
  std::size_t checked = 0;
  for (const std::string& document : documents) {
    for (const Block& block : yaml_blocks(document)) {
      EXPECT_EQ(problems_of(block), "") << document << ":" << block.line;
      ++checked;
    }
  }
  EXPECT_GE(checked, 2u);
}

}  // namespace
}  // namespace troupe::config
