#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "config/yaml_value.h"
#include "runtime/base/utf8.h"

namespace troupe::config {
namespace {

// Characters of the mark's line before it; yaml-cpp counts bytes, without a byte order mark.
int characters_before(std::string_view text, const YAML::Mark& mark) {
  const std::size_t order_mark = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  const auto column = static_cast<std::size_t>(mark.column);
  const std::size_t end = static_cast<std::size_t>(mark.pos) + order_mark;
  if (mark.pos < 0 || mark.column < 0 || end > text.size() || column > end) return mark.column;
  const std::string_view before = text.substr(end - column, column);
  return static_cast<int>(std::count_if(before.begin(), before.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// Builds the tree from yaml-cpp's events. Once a limit is passed every further event is ignored:
// the library itself ends the parse of anything nested too deeply.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const std::string& source, Problems& problems)
      : text_(text), source_(source), problems_(problems) {}

  YamlValue take() { return std::move(root_); }
  // A limit was passed.
  bool is_full() const { return overflow_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    finish(make(YamlValue::Kind::kNull, mark), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    check_tag(tag, mark);
    YamlValue value = make(YamlValue::Kind::kScalar, mark);
    value.scalar = text;
    value.quoted = tag == "!";
    finish(std::move(value), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (overflow_) return;
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) {
      problems_.add(place(mark), "an alias inside the value it names");
      return finish(make(YamlValue::Kind::kNull, mark), 0);
    }
    count(found->second.values, place(mark));
    if (!overflow_) finish(YamlValue(found->second.value), 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlValue::Kind::kList, tag, anchor, mark);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlValue::Kind::kMap, tag, anchor, mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  // A list or map whose end has not come yet.
  struct Open {
    YamlValue value;
    YAML::anchor_t anchor = 0;
    std::size_t values_before = 0;
    bool has_key = false;
    YamlValue key;
    std::set<std::string> keys;
  };
  struct Anchored {
    YamlValue value;
    std::size_t values = 1;
  };

  Place place(const YAML::Mark& mark) const {
    return {source_, mark.line + 1, characters_before(text_, mark) + 1};
  }

  YamlValue make(YamlValue::Kind kind, const YAML::Mark& mark) {
    YamlValue value;
    value.kind = kind;
    value.place = place(mark);
    count(1, value.place);
    return value;
  }

  void count(std::size_t values, const Place& at) {
    if (overflow_) return;
    values_ += values;
    if (values_ > kMostYamlValues) {
      overflow_ = true;
      problems_.add(at, fmt::format("more than {} values (aliases count as what they stand for)",
                                    kMostYamlValues));
    }
  }

  void check_tag(const std::string& tag, const YAML::Mark& mark) {
    if (overflow_ || tag.empty() || tag == "?" || tag == "!") return;
    problems_.add(place(mark), fmt::format("tags such as {} are not used here", shown(tag)));
  }

  void open(YamlValue::Kind kind, const std::string& tag, YAML::anchor_t anchor,
            const YAML::Mark& mark) {
    check_tag(tag, mark);
    Open opened;
    opened.values_before = values_;
    opened.value = make(kind, mark);
    opened.anchor = anchor;
    if (!overflow_ && open_.size() >= kMostYamlDepth) {
      overflow_ = true;
      problems_.add(place(mark), fmt::format("nested deeper than {} levels", kMostYamlDepth));
    }
    if (!overflow_) open_.push_back(std::move(opened));
  }

  void close() {
    if (overflow_) return;
    Open closed = std::move(open_.back());
    open_.pop_back();
    finish_value(std::move(closed.value), closed.anchor, values_ - closed.values_before);
  }

  void finish(YamlValue value, YAML::anchor_t anchor) {
    if (!overflow_) finish_value(std::move(value), anchor, 1);
  }

  // A complete value goes where it belongs.
  void finish_value(YamlValue value, YAML::anchor_t anchor, std::size_t values) {
    if (anchor != 0) {
      // A copy is kept, and nested anchors keep nested copies: they count too.
      count(values, value.place);
      if (overflow_) return;
      anchored_[anchor] = {value, values};
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    if (parent.value.is_list()) {
      parent.value.items.push_back(std::move(value));
    } else if (!parent.has_key) {
      parent.key = std::move(value);
      parent.has_key = true;
    } else {
      add_member(parent, std::move(value));
      parent.has_key = false;
    }
  }

  void add_member(Open& parent, YamlValue value) {
    const YamlValue& key = parent.key;
    if (!key.is_scalar() || key.scalar.empty()) {
      problems_.add(key.place, "a key must be a word, found " + key.found());
    } else if (!parent.keys.insert(key.scalar).second) {
      problems_.add(key.place, fmt::format("\"{}\" is given twice in one section (first at {})",
                                           shown(key.scalar), first_place(parent, key.scalar)));
    } else {
      // yaml-cpp places an absent value where the next one begins.
      if (value.is_null()) value.place = key.place;
      parent.value.members.push_back({key.scalar, key.place, std::move(value)});
    }
  }

  static std::string first_place(const Open& parent, const std::string& key) {
    for (const YamlMember& member : parent.value.members) {
      if (member.key == key) return fmt::format("line {}", member.key_place.line);
    }
    return {};
  }

  std::string_view text_;
  const std::string& source_;
  Problems& problems_;
  YamlValue root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchored_;
  std::size_t values_ = 0;
  bool overflow_ = false;
};

// Finds the first byte that is no text, or character that is hidden; true if there is none.
bool check_text(std::string_view text, const std::string& source, Problems& problems) {
  int line = 1, column = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = runtime::utf8_length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::string_view character = text.substr(at, bytes);
    const bool lays_out = byte == '\n' || byte == '\r' || byte == '\t';
    if (bytes == 0) {
      problems.add({source, line, column},
                   fmt::format("byte 0x{:02x} is not UTF-8 text; is this a topology file?", byte));
      return false;
    }
    if (!lays_out && runtime::is_hidden(character)) {
      problems.add({source, line, column},
                   runtime::hidden_name(character) + " stands here; take it out");
      return false;
    }
    line += byte == '\n' ? 1 : 0;
    column = byte == '\n' ? 1 : column + 1;
    at += bytes;
  }
  return true;
}

// The line of the text, from 0, without its end.
std::string_view line_of(std::string_view text, int line) {
  for (; line > 0; --line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

// The part of the line that is known to confuse the parser; empty: none.
std::string hint(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  if (line.substr(0, first).find('\t') != std::string_view::npos) {
    return "; the line is indented by a tab, and YAML takes spaces only";
  }
  // "listen: [::1]:8400": a bracket begins a list, which ends in the middle of the value.
  const std::size_t open = line.find(": [");
  const std::size_t close = open == std::string_view::npos ? open : line.find("]:", open);
  if (close != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(" \t\r,}", close), line.size());
    const std::string_view value = line.substr(open + 2, end - open - 2);
    return fmt::format("; a value that begins with [ and is no list needs quotes: \"{}\"",
                       shown(value));
  }
  return "";
}

// The same for a line in which the parser takes a star for an alias: "train: *.h5".
std::string star_hint(std::string_view line, const YAML::Exception& error) {
  using namespace YAML::ErrorMsg;
  const std::string_view what = error.msg;
  if (!what.starts_with(UNKNOWN_ANCHOR) && !what.starts_with(ALIAS_NOT_FOUND)) return "";
  const std::size_t star =
      line.rfind('*', static_cast<std::size_t>(std::max(error.mark.column, 0)));
  if (star == std::string_view::npos) return "";
  const std::string_view value = line.substr(star);
  return fmt::format("; a value that begins with * needs quotes: \"{}\"",
                     shown(value.substr(0, value.find_first_of(" \t\r,]}"))));
}

void parse_events(std::string_view text, const std::string& source, TreeBuilder& builder,
                  Problems& problems) {
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return;
    // A second document is parsed only to find out whether there is one.
    TreeBuilder ignored(text, source, problems);
    if (parser.HandleNextDocument(ignored)) {
      problems.add(ignored.take().place, "a second document; a topology file holds one");
    }
  } catch (const YAML::Exception& error) {
    // The limit is passed and told of: that the library gives up besides is no news.
    if (builder.is_full()) return;
    const bool placed = !error.mark.is_null();
    const int line = placed ? error.mark.line : 0;
    const int column = placed ? characters_before(text, error.mark) + 1 : 1;
    const std::string_view wrong = line_of(text, line);
    problems.add({source, line + 1, column}, fmt::format("not valid YAML: {}{}{}", error.msg,
                                                         hint(wrong), star_hint(wrong, error)));
  } catch (const std::exception& error) {
    problems.add({source, 1, 1}, std::string("cannot be read as YAML: ") + error.what());
  }
}

}  // namespace

Problem too_large_text(const std::string& source) {
  return {{source, 1, 1},
          fmt::format("larger than {} bytes, too large for a topology file", kMostYamlBytes)};
}

YamlValue parse_yaml(std::string_view text, const std::string& source, Problems& problems) {
  if (text.size() > kMostYamlBytes) {
    const Problem problem = too_large_text(source);
    problems.add(problem.place, problem.message);
    return {};
  }
  if (!check_text(text, source, problems)) return {};
  TreeBuilder builder(text, source, problems);
  parse_events(text, source, builder, problems);
  return builder.take();
}

}  // namespace troupe::config
