#pragma once

// Files, sockets and pipes that this process may have open, and what to say when there are none
// left.

#include <cstddef>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::runtime {

// Allows this process, and those that it starts, as many as the system lets it ask for. For a
// program to call once at its start.
void raise_descriptor_limit();

// Whether this process could open so many more, now.
bool descriptors_left(std::size_t count);

// Whether `number`, the errno of a call, says that there are none left.
bool is_out_of_descriptors(int number);

// That there are none left for `whom`, how many there may be, and what to do.
Error out_of_descriptors(ErrorKind kind, std::string_view whom);

}  // namespace troupe::runtime
