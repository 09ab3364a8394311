#pragma once

// Topology files: reading them with overrides, and printing the effective topology.

#include <string>
#include <string_view>
#include <vector>

#include "config/codec.h"
#include "config/topology.h"
#include "runtime/base/error.h"

namespace troupe::config {

// A checked topology, and where each of its values came from.
struct LoadedTopology {
  Topology topology;
  Origins origins;
};

// Reads the file, applies `overrides` ("train.seed=3", as of --set) in order, lays the model over
// the one of the zoo it names, checks everything and derives what follows. Errors: kTopology with
// every problem of the file at once, one per line as "path:line:column: field: message", or why the
// file could not be read; kUsage for an override without '='.
//
// Relative paths in the file are relative to its folder; those of overrides to the current one.
runtime::Result<LoadedTopology> load_topology(const std::string& path,
                                              const std::vector<std::string>& overrides = {});

// The same for a text: `source` names it in messages, `folder` is what its paths are relative to.
runtime::Result<LoadedTopology> parse_topology(std::string_view text, const std::string& source,
                                               const std::string& folder,
                                               const std::vector<std::string>& overrides = {});

// Every effective value as YAML, with where it came from as a comment. parse_topology gives the
// same topology again, whatever the folder and the zoo of the program then are.
std::string print_topology(const LoadedTopology& loaded);

// That print_topology() of it can be read again, as a run that is resumed does. kTopology: it
// cannot, with what is too large or no text.
runtime::Result<void> check_printed(const LoadedTopology& loaded);

// The whole file as text; where there is none, that of the shipped topology of this name
// (shipped.h). It waits for what others write into a pipe, as long as somebody does.
// kTopology: missing, unreadable, neither a file nor a pipe, a pipe that nobody writes to, larger
// than kMostYamlBytes.
runtime::Result<std::string> read_topology_text(const std::string& path);

}  // namespace troupe::config
