#include "bridge/device/cuda/library_settings.h"

#include <ATen/Context.h>

namespace cresset::bridge {
namespace {

// These raise while old and new settings of torch contradict each other.
template <class F>
uint64_t or_contradiction(F&& setting) {
  constexpr uint64_t kContradiction = 2;
  try {
    return static_cast<uint64_t>(setting());
  } catch (const c10::Error&) {
    return kContradiction;
  }
}

}  // namespace

uint64_t library_settings() {
  at::Context& context = at::globalContext();
  uint64_t out = 0;
  const auto add = [&out](auto value) { out = out * 5 + static_cast<uint64_t>(value); };
  add(or_contradiction([&] { return context.allowTF32CuBLAS(); }));
  add(or_contradiction([&] { return context.allowTF32CuDNN(); }));
  add(context.allowFP16ReductionCuBLAS());
  add(context.allowBF16ReductionCuBLAS());
  add(context.allowFP16AccumulationCuBLAS());
  add(context.blasPreferredBackend());
  add(context.linalgPreferredBackend());
  const bool flags[] = {context.userEnabledCuDNN(),           context.benchmarkCuDNN(),
                        context.deterministicCuDNN(),         context.deterministicAlgorithms(),
                        context.userEnabledFlashSDP(),        context.userEnabledMathSDP(),
                        context.userEnabledMemEfficientSDP(), context.userEnabledCuDNNSDP()};
  for (const bool flag : flags) add(flag);
  return out;
}

bool products_round_f32() {
  return or_contradiction([] { return at::globalContext().allowTF32CuBLAS(); }) == 1;
}

}  // namespace cresset::bridge
