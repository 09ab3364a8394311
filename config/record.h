#pragma once

// The codec of a section: the table of an options struct's fields. Written once per struct, it is
// what parsing, suggestions, printing, the schema and the reference read.
//
//   auto record = std::make_shared<Record<LoaderOptions>>("how events are read ahead");
//   record->field("credits", &LoaderOptions::credits, integer(1, 1024), Scope::kFixed,
//                 "Batches ready or on their way to the replicas.");
//
// The order of the fields is that of printed topologies, of the schema and of the topology hash.

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
// Refuses a field of a later version: "not available in this version: WHY".
void read_unavailable(const YamlValue& value, const std::string& why, Reader& reader);

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
    add<Access, T>(std::move(name), std::move(access), std::move(codec), scope, std::move(doc));
    return *this;
  }
  // The same for one without default: a section without it is a problem that repeats `doc`.
  template <class Access, class T>
  Record& required(std::string name, Access access, CodecOf<T> codec, Scope scope,
                   std::string doc) {
    add<Access, T>(std::move(name), std::move(access), std::move(codec), scope, std::move(doc));
    fields_.back()->required = true;
    return *this;
  }
  // The field or section added last must be given.
  Record& must_be_given() {
    fields_.back()->required = true;
    return *this;
  }
  // A section within the section: its fields have scopes of their own.
  template <class Access, class T>
  Record& section(std::string name, Access access, std::shared_ptr<const Record<T>> record,
                  std::string doc) {
    add<Access, T>(std::move(name), std::move(access), CodecOf<T>(std::move(record)), Scope::kState,
                   std::move(doc));
    fields_.back()->is_section = true;
    return *this;
  }
  // The field added last acts only where `used` holds, which is `when` in words ("policy:
  // plateau"). Elsewhere it is neither written nor may it be given.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved, to a type that depends on S
  Record& used_if(std::string when, std::function<bool(const S&)> used) {
    fields_.back()->when = std::move(when);
    fields_.back()->used = std::move(used);
    return *this;
  }
  // A field only a later version takes; `why` says what there is now.
  Record& later(std::string name, std::string why) {
    fields_.push_back(std::make_unique<LaterField>(std::move(name), std::move(why)));
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
    for (const auto& field : fields_) {
      const YamlValue* content = section->find(field->name);
      if (content == nullptr) {
        if (field->required) reader.problem(section->place, missing(*field));
        continue;
      }
      const Reader::Step step(reader, field->name);
      reader.remember(content->place);
      field->read(*content, into, reader);
    }
    for (const YamlMember& member : section->members) {
      const Field* field = find(member.key);
      if (field == nullptr) {
        reader.unknown_key(member, names());
      } else if (!field->is_used(into)) {
        reader.problem(member.key_place, field->name + " acts only with " + field->when);
      }
    }
    // A rule about fields that could not be read would report one mistake twice.
    if (!reader.path().empty() && reader.has_problem_below(reader.path())) return;
    for (const auto& rule : rules_) rule(*section, into, reader);
  }

  YamlValue write(const S& value, Selection selection) const override {
    YamlValue section = YamlValue::map();
    for (const auto& field : fields_) {
      if (!field->is_section && !selects(selection, field->scope)) continue;
      if (!field->is_used(value)) continue;
      YamlValue content = field->write(value, selection);
      const bool empty_section = field->is_section && content.members.empty();
      if (!content.is_null() && !empty_section) section.add(field->name, std::move(content));
    }
    return section;
  }

  TypeDescription describe() const override {
    TypeDescription type = TypeDescription::of(TypeDescription::Kind::kSection, name_);
    const S defaults{};
    for (const auto& field : fields_) {
      FieldDescription description = field->describe();
      description.when = field->when;
      if (!field->is_section && !field->required && description.available) {
        YamlValue value = field->write(defaults, Selection::kAll);
        const bool nothing = value.is_map() && value.members.empty();
        if (!nothing) description.default_value = std::move(value);
      }
      type.fields.push_back(std::move(description));
    }
    type.partial = partial_;
    if (short_field_.empty()) {
      type.shared = shared_;
      return type;
    }
    TypeDescription either = TypeDescription::of(TypeDescription::Kind::kOneOf, name_);
    either.parts = {field_type(short_field_), std::move(type)};
    either.shared = shared_;
    return either;
  }

 private:
  struct Field {
    virtual ~Field() = default;
    virtual void read(const YamlValue& value, S& into, Reader& reader) const = 0;
    virtual YamlValue write(const S& value, Selection selection) const = 0;
    virtual FieldDescription describe() const = 0;
    bool is_used(const S& value) const { return !used || used(value); }
    std::string name;
    std::string doc;
    std::string when;
    std::function<bool(const S&)> used;
    Scope scope = Scope::kState;
    bool required = false;
    bool is_section = false;
  };

  template <class Access, class T>
  struct TypedField final : Field {
    TypedField(Access access_in, CodecOf<T> codec_in)
        : access(std::move(access_in)), codec(std::move(codec_in)) {}
    void read(const YamlValue& value, S& into, Reader& reader) const override {
      codec->read(value, std::invoke(access, into), reader);
    }
    YamlValue write(const S& value, Selection selection) const override {
      return codec->write(std::invoke(access, value), selection);
    }
    FieldDescription describe() const override {
      FieldDescription field;
      field.name = this->name;
      field.doc = this->doc;
      field.type = codec->describe();
      field.required = this->required;
      field.scope = this->scope;
      return field;
    }
    Access access;
    CodecOf<T> codec;
  };

  struct LaterField final : Field {
    // NOLINTNEXTLINE(performance-unnecessary-value-param): moved, to a type that depends on S
    LaterField(std::string name_in, std::string why) {
      this->name = std::move(name_in);
      this->doc = std::move(why);
    }
    void read(const YamlValue& value, S&, Reader& reader) const override {
      read_unavailable(value, this->doc, reader);
    }
    YamlValue write(const S&, Selection) const override { return {}; }
    FieldDescription describe() const override {
      FieldDescription field;
      field.name = this->name;
      field.doc = this->doc;
      field.available = false;
      return field;
    }
  };

  template <class Access, class T>
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved, to a type that depends on S
  void add(std::string name, Access access, CodecOf<T> codec, Scope scope, std::string doc) {
    auto field = std::make_unique<TypedField<Access, T>>(std::move(access), std::move(codec));
    field->name = std::move(name);
    field->doc = std::move(doc);
    field->scope = scope;
    fields_.push_back(std::move(field));
  }

  const Field* find(std::string_view name) const {
    for (const auto& field : fields_) {
      if (field->name == name) return field.get();
    }
    return nullptr;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& field : fields_) names.push_back(field->name);
    return names;
  }
  TypeDescription field_type(const std::string& name) const {
    const Field* field = find(name);
    CHECK(field != nullptr, name);
    return field->describe().type;
  }
  static std::string missing(const Field& field) {
    return "\"" + field.name + "\" is missing: " + field.doc;
  }

  std::string name_;
  std::string short_field_;
  std::string shared_;
  bool partial_ = false;
  std::vector<std::unique_ptr<Field>> fields_;
  std::function<void(const YamlValue&, S&)> before_;
  std::vector<std::function<void(const YamlValue&, const S&, Reader&)>> rules_;
};

template <class S>
using RecordOf = std::shared_ptr<const Record<S>>;

}  // namespace troupe::config
