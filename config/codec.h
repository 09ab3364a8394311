#pragma once

// A codec is everything known about one type of value in a topology file: how it is read from YAML,
// written back, and described to people and editors. Sections are made of codecs by record.h; the
// parser, the printed effective topology, the JSON Schema and the reference all come from them.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "config/place.h"
#include "config/yaml_value.h"

namespace troupe::config {

// Where effective values came from, by path ("train.learning_rate.g.rate", "links.0.credits");
// a path that is missing has its default.
using Origins = std::map<std::string, Place>;
Place place_of(const Origins& origins, const std::string& field);
// "FIELD: WHAT", where the field's value stands.
Problem problem_of(const Origins& origins, const std::string& field, const std::string& what);

// The field that is named when a rule over several is broken: the first of these paths that an
// override gave, else the first that the author of the file wrote, else (all are defaults or the
// zoo's) the first. CHECKs that there is one.
std::string field_to_mend(const std::vector<std::string>& fields, const Origins& origins);

// A field's meaning for the trained state, and so who may change it.
enum class Scope {
  kState,  // the trained bits depend on it: part of the topology hash
  kFixed,  // they do not, but a resumed run keeps it
  kFree,   // --resume may change it: workers, epochs, iterations, addresses
};

// Which fields write() writes: all, those a resumed run keeps, those of the hash.
enum class Selection { kAll, kKept, kState };

bool selects(Selection selection, Scope scope);

// Reading needs more than the value: where problems and origins go, and the path of the value.
class Reader {
 public:
  // `folder`: what relative paths in the file are relative to.
  Reader(Problems& problems, Origins& origins, std::string folder);

  // One level down the path while it lives; several levels when `name` has dots.
  class Step {
   public:
    Step(Reader& reader, std::string_view name);
    ~Step();
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    Reader& reader_;
    std::size_t length_;
  };

  // The path of the value being read: "train.learning_rate.g"; empty at the top of the file.
  const std::string& path() const { return path_; }
  // The message is preceded by the path.
  void problem(const Place& place, std::string_view message);
  // The message is preceded by `path`, a whole one, which need not be below the current path.
  void problem_at(const std::string& path, const Place& place, std::string_view message);
  // The same where the value at `path` came from.
  void problem_at(const std::string& path, std::string_view message);
  // That a rule over the fields at these whole paths is broken, at field_to_mend().
  void broken_rule(const std::vector<std::string>& fields, std::string_view message);
  // "expected `what`, found ...".
  void expected(const YamlValue& value, std::string_view what);
  // An unknown key of the section at the current path.
  void unknown_key(const YamlMember& member, std::span<const std::string> known);
  // Remembers where the value at the current path came from.
  void remember(const Place& place);
  // The origin of the value at a path; the default's if none was remembered.
  Place origin(const std::string& path) const { return place_of(origins_, path); }
  const Origins& origins() const { return origins_; }
  // The list at a path lost an item: what is remembered of the later ones moves up.
  void forget_item(const std::string& list, std::size_t index);
  // Whether anything at or below a path had a problem so far.
  bool has_problem_below(std::string_view path) const;
  // A path in the file as an absolute one: relative to the file, or to the current folder when it
  // was given on the command line.
  std::string resolve(const std::string& path, const Place& place) const;
  // The same where the text may be a pattern of glob(3): what the folder's name has of its signs
  // stands for itself then.
  std::string resolve_pattern(const std::string& pattern, const Place& place) const;

 private:
  // The folder that a relative path at the place is relative to.
  std::string folder_of(const Place& place, std::error_code& error) const;

  Problems& problems_;
  Origins& origins_;
  std::string folder_;
  std::string path_;
  std::vector<std::string> paths_with_problems_;
};

struct FieldDescription;

// A type as data: what the schema and the reference are written from. Which members mean something
// depends on the kind.
struct TypeDescription {
  enum class Kind {
    kBoolean,
    kInteger,
    kNumber,
    kText,
    kWord,
    kList,
    kSection,  // fields known by name
    kNamed,    // a section whose keys the user chooses
    kOneOf,    // any of the alternatives
  };
  Kind kind = Kind::kText;
  std::string name;  // for people: "whole number from 1", "duration such as 500ms"
  std::optional<double> minimum, maximum;       // of numbers, inclusive
  bool above_minimum = false;                   // ... exclusive
  std::size_t least_items = 0, most_items = 0;  // of lists; 0: no bound
  std::string pattern;                          // of text: an ECMAScript regular expression
  std::vector<std::string> words;
  std::vector<std::string> later_words;  // those that only a later version takes, or another field
  std::string why_later;                 // why, in words; empty: it is a later version
  std::vector<FieldDescription> fields;
  bool exclusive = false;  // of sections: exactly one field is given
  bool partial = false;    // of sections: what is missing may come from the zoo
  std::string shared;      // a name under which the schema describes it once; empty: in place
  std::vector<TypeDescription> parts;  // alternatives, or the one type of items and named values

  static TypeDescription of(Kind kind, std::string name);
};

// The answer to one of the later_words: "only fp32 is available in this version, not fp16".
std::string later_word_refused(const TypeDescription& type, std::string_view word);

// A field of a section as data.
struct FieldDescription {
  std::string name;
  std::string doc;  // a sentence with its unit, for users
  TypeDescription type;
  YamlValue default_value;  // null: none
  std::string when;         // what it acts with, in words; empty: always
  bool required = false;
  Scope scope = Scope::kState;
};

// Codecs are immutable and shared: any thread may use one.
template <class T>
class Codec {
 public:
  virtual ~Codec() = default;
  // Reads `value` into `into`. Every problem goes to the reader; what could not be read keeps the
  // content it had.
  virtual void read(const YamlValue& value, T& into, Reader& reader) const = 0;
  // The value such that read() of it gives it back; null when there is nothing to write.
  virtual YamlValue write(const T& value, Selection selection) const = 0;
  virtual TypeDescription describe() const = 0;
};

template <class T>
using CodecOf = std::shared_ptr<const Codec<T>>;

// A codec made of its three parts, for types that need no class of their own. See codec_of().
template <class T>
class MadeCodec final : public Codec<T> {
 public:
  using Read = std::function<void(const YamlValue&, T&, Reader&)>;
  using Write = std::function<YamlValue(const T&, Selection)>;

  MadeCodec(TypeDescription type, Read read, Write write)
      : type_(std::move(type)), read_(std::move(read)), write_(std::move(write)) {}
  void read(const YamlValue& value, T& into, Reader& reader) const override {
    read_(value, into, reader);
  }
  YamlValue write(const T& value, Selection selection) const override {
    return write_(value, selection);
  }
  TypeDescription describe() const override { return type_; }

 private:
  TypeDescription type_;
  Read read_;
  Write write_;
};

template <class T>
CodecOf<T> codec_of(TypeDescription type, typename MadeCodec<T>::Read read,
                    typename MadeCodec<T>::Write write) {
  return std::make_shared<MadeCodec<T>>(std::move(type), std::move(read), std::move(write));
}

// Gives every value in the tree the place it came from (or the default's).
void annotate(YamlValue& tree, const Origins& origins);

}  // namespace troupe::config
