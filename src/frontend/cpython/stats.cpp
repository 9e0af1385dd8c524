#include "frontend/cpython/stats.h"

#include "bridge/autograd/gradients.h"

namespace cresset::frontend {

Totals& live_totals() {
  static Totals totals;  // under the GIL
  return totals;
}

Totals totals() {
  Totals out = live_totals();
  out.ms_codegen += bridge::ms_generated_in_backward();
  return out;
}

void reset_totals() {
  live_totals() = Totals{};
  bridge::ms_generated_in_backward() = 0;
  bridge::double_backward_fallbacks() = 0;
}

void note_reason(const std::string& function, BreakReason why) {
  live_totals().break_reasons.push_back({function, std::move(why)});
}

}  // namespace cresset::frontend
