// The counters behind cresset.stats().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/break_reason.h"
#include "bridge/capture/capture_costs.h"

namespace cresset::frontend {

// A reason for a graph break or an eager call of a compiled function.
struct NotedReason {
  std::string function;
  BreakReason why;
  std::string text() const { return function + ": " + why.with_remedy(); }
  bool operator==(const NotedReason& other) const = default;
};

struct Totals {  // process-wide, for cresset.stats()
  int64_t calls = 0, graphs = 0, graph_breaks = 0, eager_calls = 0;
  int64_t eager_fallbacks = 0;  // eager fallbacks: after a graph break, CPython ran the rest of the call
  int64_t operators_captured = 0, shape_rule_entries = 0, generic_rule_entries = 0, shape_memo_hits = 0, nodes = 0;
  int64_t guards_asked = 0, guards_checked = 0;
  int64_t cache_entries_checked = 0;               // during the search for entries which serve calls and segments
  int64_t steps_proved = 0, steps_not_proved = 0;  // CRESSET_VALIDATE=1
  double ms_validation = 0;
  int64_t backward_graphs = 0, kernels = 0, distinct_kernels = 0, extern_calls = 0, bytes_planned = 0;
  int64_t programs_from_disk = 0, frozen_values = 0;
  double ms_setup = 0, ms_capture = 0, ms_lowering = 0, ms_codegen = 0, ms_shape_rules = 0;
  std::vector<std::string> recompiles;
  std::vector<NotedReason> break_reasons;
  bridge::CaptureCosts capture_costs;
};

Totals totals();
Totals& live_totals();  // under the GIL
void reset_totals();
void note_reason(const std::string& function, BreakReason why);  // under the GIL

}  // namespace cresset::frontend
