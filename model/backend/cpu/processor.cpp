#include "model/backend/cpu/processor.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace troupe::model::cpu {

std::string processor_name() {
  std::string brand;
#if defined(__x86_64__)
  for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    std::array<unsigned, 4> words{};
    if (__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3]) == 0) break;
    std::array<char, sizeof(words)> text{};
    std::memcpy(text.data(), words.data(), sizeof(words));
    brand.append(text.data(), text.size());
  }
#endif
  return name_in_brand(brand);
}

std::string name_in_brand(std::string_view brand) {
  brand = brand.substr(0, brand.find_last_not_of(std::string_view("\0 ", 2)) + 1);
  if (brand.empty()) return "unnamed processor";
  return std::string(brand.substr(brand.find_first_not_of(' ')));
}

std::string isa_name(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_mic:
      return "avx512_mic";
    case dnnl::cpu_isa::avx512_mic_4ops:
      return "avx512_mic_4ops";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    default:
      return std::to_string(static_cast<int>(isa));
  }
}

}  // namespace troupe::model::cpu
