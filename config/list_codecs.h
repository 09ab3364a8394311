#pragma once

// Codecs made of other codecs: lists, fixed lists, and values that may be absent.

#include <array>
#include <type_traits>

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

// The codec of a list with a container C of items: the description names the list `what`.
// `prepare` makes room in the container for so many items.
template <class C, class T>
CodecOf<C> items_of(const std::string& what, CodecOf<T> item, std::size_t least, std::size_t most,
                    std::function<void(C&, std::size_t)> prepare) {
  TypeDescription type = TypeDescription::of(TypeDescription::Kind::kList, what);
  type.least_items = least;
  type.most_items = most;
  type.parts = {item->describe()};
  return codec_of<C>(
      std::move(type),
      [=](const YamlValue& value, C& into, Reader& reader) {
        if (!check_items(value, least, most, item->describe().name, reader)) return;
        prepare(into, value.items.size());
        for (std::size_t i = 0; i < value.items.size(); ++i) {
          const Reader::Step step(reader, std::to_string(i));
          item->read(value.items[i], into[i], reader);
          if constexpr (std::is_same_v<C, std::vector<T>>) reader.remember(value.items[i].place);
        }
      },
      [item](const C& value, Selection selection) {
        YamlValue list = YamlValue::list();
        for (const T& each : value) list.items.push_back(item->write(each, selection));
        return list;
      });
}

// Between `least` and `most` items (0: no bound). Each is read at the path of its index, and the
// whole list is replaced: nothing of a longer list before it stays.
template <class T>
CodecOf<std::vector<T>> list(CodecOf<T> item, std::size_t least, std::size_t most) {
  const std::string what = "a list, each " + item->describe().name;
  return items_of<std::vector<T>, T>(
      what, std::move(item), least, most,
      [](std::vector<T>& into, std::size_t items) { into.assign(items, T{}); });
}

// Exactly N values, or fewer where `least` allows: the rest is then filled with `fill`.
template <std::size_t N, class T>
CodecOf<std::array<T, N>> array(CodecOf<T> item, std::size_t least = N, T fill = T{}) {
  const std::string what = "a list of " + (least == N ? "" : std::to_string(least) + " to ") +
                           std::to_string(N) + ", each " + item->describe().name;
  return items_of<std::array<T, N>, T>(
      what, std::move(item), least, N,
      [fill](std::array<T, N>& into, std::size_t) { into.fill(fill); });
}

// Absent unless given, and null is as if it were not; an absent one is not written. One that is
// given is read over the content that was there before, as a record of options reads over its
// defaults.
template <class T>
CodecOf<std::optional<T>> optional(CodecOf<T> content) {
  return codec_of<std::optional<T>>(
      content->describe(),
      [content](const YamlValue& value, std::optional<T>& into, Reader& reader) {
        if (value.is_null()) return;
        T given = into.value_or(T{});
        content->read(value, given, reader);
        into = std::move(given);
      },
      [content](const std::optional<T>& value, Selection selection) {
        return value ? content->write(*value, selection) : YamlValue{};
      });
}

// The same, but what is kept of a run does not tell the value `usual`: for a field that is newer
// than runs which nothing else than this value could have had.
template <class T>
CodecOf<T> newer(CodecOf<T> content, T usual) {
  return codec_of<T>(
      content->describe(),
      [content](const YamlValue& value, T& into, Reader& reader) {
        content->read(value, into, reader);
      },
      [content, usual](const T& value, Selection selection) {
        if (selection != Selection::kAll && value == usual) return YamlValue{};
        return content->write(value, selection);
      });
}

}  // namespace troupe::config
