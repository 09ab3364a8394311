#pragma once

// Codecs made of other codecs: lists, fixed lists, and values that may be absent.

#include <array>

#include "config/codec.h"

namespace troupe::config {

// Lists of every kind of item share these. Reports a list with too few or too many items; most = 0:
// no bound. False then.
inline bool check_items(const YamlValue& value, std::size_t least, std::size_t most,
                        const std::string& of, Reader& reader) {
  const std::size_t items = value.items.size();
  if (value.is_list() && items >= least && (most == 0 || items <= most)) return true;
  std::string count;
  if (least == most) {
    count = " of " + std::to_string(least);
  } else if (value.is_list()) {
    count = items < least ? " of at least " + std::to_string(least)
                          : " of at most " + std::to_string(most);
  }
  const std::string found = value.is_list() ? " with " + std::to_string(items) : "";
  reader.problem(value.place,
                 "expected a list" + count + ", each " + of + "; found " + value.found() + found);
  return false;
}

// Between `least` and `most` items (0: no bound). Each is read at the path of its index, and the
// whole list is replaced: nothing of a longer list before it stays.
template <class T>
class ListCodec final : public Codec<std::vector<T>> {
 public:
  ListCodec(CodecOf<T> item, std::size_t least, std::size_t most)
      : item_(std::move(item)), least_(least), most_(most) {}

  void read(const YamlValue& value, std::vector<T>& into, Reader& reader) const override {
    if (!check_items(value, least_, most_, item_->describe().name, reader)) return;
    into.assign(value.items.size(), T{});
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const Reader::Step step(reader, std::to_string(i));
      item_->read(value.items[i], into[i], reader);
      reader.remember(value.items[i].place);
    }
  }
  YamlValue write(const std::vector<T>& value, Selection selection) const override {
    YamlValue list = YamlValue::list();
    for (const T& item : value) list.items.push_back(item_->write(item, selection));
    return list;
  }
  TypeDescription describe() const override {
    const TypeDescription item = item_->describe();
    TypeDescription type =
        TypeDescription::of(TypeDescription::Kind::kList, "a list, each " + item.name);
    type.least_items = least_;
    type.most_items = most_;
    type.parts = {item};
    return type;
  }

 private:
  CodecOf<T> item_;
  std::size_t least_;
  std::size_t most_;
};

// See ListCodec.
template <class T>
CodecOf<std::vector<T>> list(CodecOf<T> item, std::size_t least, std::size_t most) {
  return std::make_shared<ListCodec<T>>(std::move(item), least, most);
}

// Exactly N values, or fewer where `least` allows: the rest is then filled with `fill`.
template <class T, std::size_t N>
class ArrayCodec final : public Codec<std::array<T, N>> {
 public:
  ArrayCodec(CodecOf<T> item, std::size_t least, T fill)
      : item_(std::move(item)), least_(least), fill_(fill) {}

  void read(const YamlValue& value, std::array<T, N>& into, Reader& reader) const override {
    if (!check_items(value, least_, N, item_->describe().name, reader)) return;
    into.fill(fill_);
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const Reader::Step step(reader, std::to_string(i));
      item_->read(value.items[i], into[i], reader);
    }
  }
  YamlValue write(const std::array<T, N>& value, Selection selection) const override {
    YamlValue list = YamlValue::list();
    for (const T& item : value) list.items.push_back(item_->write(item, selection));
    return list;
  }
  TypeDescription describe() const override {
    const TypeDescription item = item_->describe();
    TypeDescription type =
        TypeDescription::of(TypeDescription::Kind::kList,
                            "a list of " + (least_ == N ? "" : std::to_string(least_) + " to ") +
                                std::to_string(N) + ", each " + item.name);
    type.least_items = least_;
    type.most_items = N;
    type.parts = {item};
    return type;
  }

 private:
  CodecOf<T> item_;
  std::size_t least_;
  T fill_;
};

template <std::size_t N, class T>
CodecOf<std::array<T, N>> array(CodecOf<T> item, std::size_t least = N, T fill = T{}) {
  return std::make_shared<ArrayCodec<T, N>>(std::move(item), least, fill);
}

// Absent unless given; an absent one is not written. One that is given is read over the content
// that was there before, as a record of options reads over its defaults.
template <class T>
class OptionalCodec final : public Codec<std::optional<T>> {
 public:
  explicit OptionalCodec(CodecOf<T> content) : content_(std::move(content)) {}

  void read(const YamlValue& value, std::optional<T>& into, Reader& reader) const override {
    T content = into.value_or(T{});
    content_->read(value, content, reader);
    into = std::move(content);
  }
  YamlValue write(const std::optional<T>& value, Selection selection) const override {
    return value ? content_->write(*value, selection) : YamlValue{};
  }
  TypeDescription describe() const override { return content_->describe(); }

 private:
  CodecOf<T> content_;
};

template <class T>
CodecOf<std::optional<T>> optional(CodecOf<T> content) {
  return std::make_shared<OptionalCodec<T>>(std::move(content));
}

}  // namespace troupe::config
