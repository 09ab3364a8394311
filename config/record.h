#pragma once

// The codec of a section: the table of an options struct's fields. Written once per struct, it is
// what parsing, suggestions, printing, the schema and the reference read.
//
//   auto record = std::make_shared<Record<LoaderOptions>>("how events are read ahead");
//   record->field("credits", &LoaderOptions::credits, integer(1, 1024), Scope::kFixed,
//                 "Batches ready or on their way to the replicas.");
//
// The order of the fields is that of printed topologies, of the schema and of the topology hash.

#include <algorithm>
#include <functional>
#include <utility>

#include "config/codec.h"

namespace troupe::config {

// The section a value stands for: itself when it is a map, an empty one when it is null, and for a
// record with a short form `short_field: value` when it is anything else. A member with an empty
// key (an override below a short form) stands for the short field. Null after reporting a problem.
const YamlValue* as_section(const YamlValue& value, const std::string& short_field,
                            std::span<const std::string> fields, YamlValue& storage,
                            Reader& reader);

// Reaches a value through these members in turn; without any it is the value itself.
template <class... Members>
auto within(Members... members) {
  return [members...](auto& whole) -> auto& { return (whole.*....*members); };
}

// The codec of a struct by way of one of its fields, which `access` reaches.
template <class S, class Access, class T>
class FieldCodec final : public Codec<S> {
 public:
  FieldCodec(Access access, CodecOf<T> codec)
      : access_(std::move(access)), codec_(std::move(codec)) {}
  void read(const YamlValue& value, S& into, Reader& reader) const override {
    codec_->read(value, std::invoke(access_, into), reader);
  }
  YamlValue write(const S& value, Selection selection) const override {
    return codec_->write(std::invoke(access_, value), selection);
  }
  TypeDescription describe() const override { return codec_->describe(); }

 private:
  Access access_;
  CodecOf<T> codec_;
};

// Built once, then only read through Codec's const interface. A default-constructed S holds the
// defaults; reading changes only what the section gives, so that it can be laid over anything.
template <class S>
class Record final : public Codec<S> {
 public:
  // `name`: for people, in messages such as "expected NAME, found a list".
  explicit Record(std::string name) : name_(std::move(name)) {}

  // `access` is a member pointer or a callable from S& and const S& to the content.
  template <class Access, class T>
  Record& field(std::string name, Access access, CodecOf<T> codec, Scope scope, std::string doc) {
    Field field;
    field.about.name = std::move(name);
    field.about.doc = std::move(doc);
    field.about.scope = scope;
    field.codec = std::make_shared<FieldCodec<S, Access, T>>(std::move(access), std::move(codec));
    fields_.push_back(std::move(field));
    return *this;
  }
  // The same for one without default: a section without it is a problem that repeats `doc`.
  template <class Access, class T>
  Record& required(std::string name, Access access, CodecOf<T> codec, Scope scope,
                   std::string doc) {
    field(std::move(name), std::move(access), std::move(codec), scope, std::move(doc));
    return must_be_given();
  }
  // The field or section added last must be given.
  Record& must_be_given() {
    fields_.back().about.required = true;
    return *this;
  }
  // A section within the section: its fields have scopes of their own.
  template <class Access, class T>
  Record& section(std::string name, Access access, std::shared_ptr<const Record<T>> record,
                  std::string doc) {
    field(std::move(name), std::move(access), CodecOf<T>(std::move(record)), Scope::kState,
          std::move(doc));
    fields_.back().is_section = true;
    return *this;
  }
  // The field added last acts only where `used` holds, which is `when` in words ("policy:
  // plateau"). Elsewhere it is neither written nor may it be given.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved, to a type that depends on S
  Record& used_if(std::string when, std::function<bool(const S&)> used) {
    fields_.back().about.when = std::move(when);
    fields_.back().used = std::move(used);
    return *this;
  }
  // A value that is no section counts as this field's.
  Record& short_form(std::string field) {
    short_field_ = std::move(field);
    return *this;
  }
  // Sections of the same kind appear several times: the schema describes them once, as `name`.
  Record& shared(std::string name) {
    shared_ = std::move(name);
    return *this;
  }
  // A missing field may come from the zoo, which is laid under the section before it is read.
  Record& partial() {
    partial_ = true;
    return *this;
  }
  // Before the fields are read: defaults that depend on what the section says.
  Record& before(std::function<void(const YamlValue&, S&)> action) {
    before_ = std::move(action);
    return *this;
  }
  // After the fields were read without problems: rules between fields. Those of the whole file are
  // called in any case.
  Record& check(std::function<void(const YamlValue&, const S&, Reader&)> rule) {
    rules_.push_back(std::move(rule));
    return *this;
  }

  void read(const YamlValue& value, S& into, Reader& reader) const override {
    YamlValue storage;
    const YamlValue* section = as_section(value, short_field_, names(), storage, reader);
    if (section == nullptr) return;
    if (before_) before_(*section, into);
    for (const Field& field : fields_) {
      const YamlValue* content = section->find(field.about.name);
      if (content == nullptr) {
        if (field.about.required) reader.problem(section->place, missing(field.about));
        continue;
      }
      const Reader::Step step(reader, field.about.name);
      reader.remember(content->place);
      field.codec->read(*content, into, reader);
    }
    for (const YamlMember& member : section->members) {
      const Field* field = find(member.key);
      if (field == nullptr) {
        reader.unknown_key(member, names());
      } else if (!field->is_used(into) && !is_unknown(field->about.when, reader)) {
        reader.problem(member.key_place, member.key + " acts only with " + field->about.when);
      }
    }
    // A rule about fields that could not be read would report one mistake twice.
    if (!reader.path().empty() && reader.has_problem_below(reader.path())) return;
    for (const auto& rule : rules_) rule(*section, into, reader);
  }

  YamlValue write(const S& value, Selection selection) const override {
    YamlValue section = YamlValue::map();
    for (const Field& field : fields_) {
      if (!field.is_section && !selects(selection, field.about.scope)) continue;
      if (!field.is_used(value)) continue;
      YamlValue content = field.codec->write(value, selection);
      const bool empty_section = field.is_section && content.members.empty();
      if (!content.is_null() && !empty_section) section.add(field.about.name, std::move(content));
    }
    return section;
  }

  TypeDescription describe() const override {
    TypeDescription type = TypeDescription::of(TypeDescription::Kind::kSection, name_);
    const S defaults{};
    for (const Field& field : fields_) {
      FieldDescription& about = type.fields.emplace_back(field.about);
      about.type = field.codec->describe();
      if (field.is_section || about.required) continue;
      YamlValue value = field.codec->write(defaults, Selection::kAll);
      const bool nothing = value.is_map() && value.members.empty();
      if (!nothing) about.default_value = std::move(value);
    }
    type.partial = partial_;
    if (short_field_.empty()) {
      type.shared = shared_;
      return type;
    }
    TypeDescription either = TypeDescription::of(TypeDescription::Kind::kOneOf, name_);
    const Field* short_field = find(short_field_);
    CHECK(short_field != nullptr, short_field_);
    either.parts = {short_field->codec->describe(), std::move(type)};
    either.shared = shared_;
    return either;
  }

 private:
  struct Field {
    FieldDescription about;  // without its type and default
    CodecOf<S> codec;        // of the whole, by way of the field
    std::function<bool(const S&)> used;
    bool is_section = false;

    bool is_used(const S& value) const { return !used || used(value); }
  };

  // Whether the field that `when` is about ("policy: plateau") could not be read.
  static bool is_unknown(const std::string& when, const Reader& reader) {
    const std::string field = when.substr(0, when.find(':'));
    const bool is_of_section = field.find('.') == std::string::npos && !reader.path().empty();
    return reader.has_problem_below(is_of_section ? reader.path() + "." + field : field);
  }
  const Field* find(std::string_view name) const {
    const auto found = std::find_if(fields_.begin(), fields_.end(),
                                    [&](const Field& field) { return field.about.name == name; });
    return found == fields_.end() ? nullptr : &*found;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Field& field : fields_) names.push_back(field.about.name);
    return names;
  }
  static std::string missing(const FieldDescription& field) {
    return "\"" + field.name + "\" is missing: " + field.doc;
  }

  std::string name_;
  std::string short_field_;
  std::string shared_;
  bool partial_ = false;
  std::vector<Field> fields_;
  std::function<void(const YamlValue&, S&)> before_;
  std::vector<std::function<void(const YamlValue&, const S&, Reader&)>> rules_;
};

template <class S>
using RecordOf = std::shared_ptr<const Record<S>>;

}  // namespace troupe::config
