// Programs which observe the death of objects. A capture keeps the objects alive which it has met, so it ends before an
// operation with an observable death.
#pragma once

#include "frontend/eval/hooks.h"
#include "frontend/session/provenance.h"
#include "frontend/session/segment_client.h"
#include "frontend/trace_rules/c_function_effects.h"

namespace cresset::frontend {

// Reason for running this call and later calls in eager mode: a capture keeps objects alive.
inline constexpr const char* kWatchesDeaths = "may tell when an object dies";

class ObservedLives {
 public:
  ObservedLives(const Provenance& provenance, SegmentMaker& maker) : provenance_(provenance), maker_(maker) {}

  // Whether the write or method may release an object whose death is observed, while the capture keeps it alive.
  bool may_end_a_life(const CressetWrite& write);
  bool may_end_a_life(const CCall& what);
  // Whether the call asks for an object which only the capture keeps alive, or registers an observer for the death of
  // an older object.
  bool watches_death(const CCall& what, const CressetCall& call);
  // When the segment's refusal is BreakKind::ObjectLifetime: the watched object. Borrowed; nullptr: several objects.
  PyObject* dying() const { return dying_; }
  void forget_dying() { dying_ = nullptr; }

 private:
  const Provenance& provenance_;
  SegmentMaker& maker_;
  PyObject* dying_ = nullptr;  // borrowed
};

}  // namespace cresset::frontend
