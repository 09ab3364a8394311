#pragma once

// One list of fields per struct. An archive walks the list: one writes the struct, one reads it,
// those of tests draw it and compare it. So none can leave out what another has.
//
// The list stands in the struct's namespace, for the constant struct and for the other:
//
//   template <class Archive>
//   void fields(Archive& archive, Like<Lesson> auto& lesson) {
//     archive.number("next_step", lesson.next_step);
//   }
//
// A second function says what the list cannot, such as that one field is less than another:
//
//   const char* fault_of(const Lesson& lesson);  // null: sound; else what is wrong with it
//
// An archive that reads asks it of every struct it has read. A receiver can then use the struct
// without another look.
//
// Calls of an archive, each with a field's name and the field:
//
//   number(name, value, most)         an unsigned integer, at most `most`; without: any
//   version(name, value, own)         of the protocol; what has another one is read no further
//   integer(name, value, least, most) a signed one; without limits: any
//   real(name, value)                 a double, of any bits
//   flag(name, value)
//   time(name, value)                 a Duration or TimePoint
//   hash(name, value)                 a Hash128
//   choice(name, value, last)         an enum, from 0 to `last`
//   perhaps_choice(name, value, last) an optional of one
//   text(name, value, most)           of at most `most` bytes
//   prose(name, value, most)          the same for people: a longer one is cut where it is written
//   words(name, value, most)          text of a stranger: read, it is printable
//   converted(name, value, most, to_text, from_text)
//                                     what is a text elsewhere; from_text() gives an optional
//   object(name, value)               a struct with a list of its own
//   list(name, values, most, each)    a vector of at most `most`; each(archive, value) makes one
//                                     call. Without `each`: unsigned integers or structs
//   first(name, values, most)         the same; more than `most` are left out where it is written
//   all(name, values)                 an array of unsigned integers
//   perhaps(name, value, each)        an optional, or a pointer to a constant struct, that may be
//                                     absent. Without `each`: of a struct
//   shared(name, pointer)             a pointer to a constant struct, never null
//   inlined(value)                    a struct, or such a pointer, whose fields stand in its place
//   last(name, pointer)               as perhaps(); nothing at all stands for an absent one
//   floats(name, values)              a vector of floats, of any size
//   attached(name, buffer)            a Buffer, of any size

#include <concepts>
#include <type_traits>

namespace troupe::runtime {

// A Struct, constant or not.
template <class T, class Struct>
concept Like = std::same_as<std::remove_const_t<T>, Struct>;

}  // namespace troupe::runtime
