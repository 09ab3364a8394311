#pragma once

// What kind of host computes, in words: a part of the numerics class.

#include <string>

#include <dnnl.hpp>

namespace troupe::model::cpu {

// The brand string of CPUID, such as "AMD EPYC 7742 64-Core Processor"; "unnamed processor" where
// there is none.
std::string processor_name();

// "avx512_core"; a number for one that this version of oneDNN's header does not name.
std::string isa_name(dnnl::cpu_isa isa);

}  // namespace troupe::model::cpu
