#include "model/backend/cpu/processor.h"

#include <array>
#include <cstring>
#include <utility>

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
  using Isa = dnnl::cpu_isa;
  static constexpr std::pair<Isa, const char*> kNames[] = {
      {Isa::sse41, "sse41"},
      {Isa::avx, "avx"},
      {Isa::avx2, "avx2"},
      {Isa::avx2_vnni, "avx2_vnni"},
      {Isa::avx512_mic, "avx512_mic"},
      {Isa::avx512_mic_4ops, "avx512_mic_4ops"},
      {Isa::avx512_core, "avx512_core"},
      {Isa::avx512_core_vnni, "avx512_core_vnni"},
      {Isa::avx512_core_bf16, "avx512_core_bf16"},
      {Isa::avx512_core_amx, "avx512_core_amx"},
  };
  for (const auto& [each, name] : kNames) {
    if (each == isa) return name;
  }
  return std::to_string(static_cast<int>(isa));
}

}  // namespace troupe::model::cpu
