#pragma once

// One list of fields per struct. An archive walks the list: it writes the struct for the wire or as
// JSON, or reads it. Archives of tests draw and compare it. No archive can leave out a field that
// another has.
//
// The list stands in the struct's namespace, for the constant struct and for the other:
//
//   template <class Archive>
//   void fields(Archive& archive, Like<Lesson> auto& lesson) {
//     archive.number("next_step", lesson.next_step);
//   }
//
// A second function checks rules that the list cannot express, such as that one field is less than
// another:
//
//   const char* fault_of(const Lesson& lesson);  // null: sound; else what is wrong with it
//
// An archive that reads calls it for every struct it has read, so a receiver can use the struct
// without further checks.
//
// Calls of an archive, each with a field's name and the field:
//
//   number(name, value, most)         an unsigned integer, at most `most`; without: any
//   integer(name, value, least, most) a signed one; without limits: any
//   real(name, value)                 a double, of any bits
//   flag(name, value)
//   time(name, value)                 a Duration or TimePoint
//   hash(name, value)                 a Hash128
//   choice(name, value, last)         an enum, from 0 to `last`
//   perhaps_choice(name, value, last) an optional of one
//   text(name, value, most)           of at most `most` bytes
//   prose(name, value, most)          the same for people: a longer one is cut where it is written
//   words(name, value, most)          text of an unknown peer: read, it is printable
//   converted(name, value, most, to_text, from_text)
//                                     what is a text elsewhere; from_text() gives an optional
//   object(name, value)               a struct with a list of its own, or a pointer to a constant
//                                     one, never null
//   list(name, values, most, each)    a vector of at most `most`; each(archive, value) makes one
//                                     call. Without `each`: unsigned integers or structs
//   first(name, values, most)         the same; more than `most` are left out where it is written
//   all(name, values)                 an array of unsigned integers
//   perhaps(name, value)              an optional, or a pointer to a constant struct, that may be
//                                     absent
//   inlined(value)                    a struct, or such a pointer, whose fields stand in its place
//   last(name, value)                 as perhaps(); nothing at all stands for an absent one, nor in
//                                     JSON for an empty list or text
//   floats(name, values)              a vector of floats, of any size
//   attached(name, buffer)            a Buffer, of any size
//   shared(name, pointer)             a pointer to a constant struct without attachments, never
//                                     null, that many are told one after the other: they are sent
//                                     the same bytes, which are written once
//
// JSON (runtime/base/json_writer.h, json_reader.h) lacks time, hash, choice, perhaps_choice, words,
// first, all, floats, attached, shared, and pointers. It alone has:
//
//   real(name, value, digits)         so many digits in place of 9
//   moment(name, value)               a double: seconds since 1970, told to a millisecond
//   bits(name, value)                 a number of 64 bits, told in hexadecimal digits
//   perhaps(name, value, each)        each(archive, value) makes one call
//   json(name, text)                  a text that is JSON already
//   map(name, entries, each)          a vector of pairs, the first of each its name; nothing at all
//                                     stands for an empty one
//   tuple(name, inside)               inside(archive) makes calls for values without names
//   group(name, inside)               the same for fields of the struct in an object of their own

#include <concepts>
#include <type_traits>

namespace troupe::runtime {

// A Struct, constant or not.
template <class T, class Struct>
concept Like = std::same_as<std::remove_const_t<T>, Struct>;

// The fault of a struct by the rule beside its list; null: it has none, or there is no such rule.
template <class Struct>
const char* fault_in(const Struct& value) {
  if constexpr (requires { fault_of(value); }) return fault_of(value);
  return nullptr;
}

}  // namespace troupe::runtime
