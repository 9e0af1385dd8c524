// The feedback which a compiled function collected from its calls, in addition to its cache entries
// (automatic_dynamic.h). It covers calls which run as a whole, numbers which are specialized too often, and lists which
// grow. Every compiled function starts without feedback, even for the same code, so that its programs do not depend on
// earlier activity in the process. All recorded objects are held, so that no address is reused. Limits: thresholds.h.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// Objects by identity, held.
template <class T>
using ByObject = std::unordered_map<PyObject*, std::pair<PyRef, T>>;
struct Nothing {};

class Feedback {
 public:
  // The feedback of the compiled function which this thread is calling; nullptr outside of calls. All functions here
  // need the GIL.
  static Feedback* current();

  // Calls and operators inside of which no segment can end (opaque_calls.h). kind: nullptr for an operator.
  struct PlaceOfCall {
    PyObject *code, *kind;
    int instruction;
    bool operator==(const PlaceOfCall&) const = default;
  };
  struct HashOfPlace {
    size_t operator()(const PlaceOfCall& place) const {
      return reinterpret_cast<size_t>(place.code) * 0x9E3779B97F4A7C15ull ^ reinterpret_cast<size_t>(place.kind) ^
             static_cast<size_t>(place.instruction);
    }
  };
  std::unordered_map<PlaceOfCall, std::pair<PyRef, PyRef>, HashOfPlace> whole;

  // Code objects which autograd has to call, and code which uses autograd on tensors which live on: known uses and
  // pending questions (eager_autograd_calls.h).
  ByObject<Nothing> of_autograd;
  struct Users {
    ByObject<Nothing> known, asked;
  };
  std::array<Users, 2> users;  // by UseOfAutograd

  // Specialized values, by code and operator (specializations.h).
  struct Specializations {
    PyRef code, keeper;
    std::unordered_set<int64_t> values;
  };
  std::map<std::pair<PyObject*, const void*>, Specializations> specializations;

  // Lists, deques and dictionaries in state (growing_containers.h).
  struct GrowingContainer {
    bool closed = false, stays_open = false;
    int dropped = 0;  // number of dropped cache entries which had guarded another length
  };
  ByObject<GrowingContainer> growing;
  // Data of the call being captured, which holds the objects: list arguments which segments do not inspect, and the
  // number of segments which ended because the program inspected a list.
  struct OfCall {
    std::unordered_set<PyObject*> closed;
    std::unordered_map<PyObject*, int> looks;
  };
  OfCall of_call;

  // Weak references to generators which existed before a call (external_generators.h).
  std::unordered_map<PyObject*, PyRef> external_generators;

  // How often the code of cached functions did more than compute, counted since its last pure run
  // (session_lru_cache.h).
  ByObject<int> did_more;

  // Operators whose sizes were predicted wrongly (bridge/capture/meta_shape_rule.h).
  std::unordered_set<std::string> unpredictable;

  // Whether a full garbage collection left tensors alive which no reconstruction covers (segment.cpp).
  bool collected_in_vain = false;

  // The amount of feedback; a growing number means new feedback.
  size_t size() const;
  // A line of text per item of feedback.
  std::vector<std::string> texts() const;
  void clear();
  int visit(visitproc visit, void* arg) const;
};

// Marks this thread, during its lifetime, as calling the function which owns the feedback.
class UseFeedback {
 public:
  explicit UseFeedback(Feedback& of);
  ~UseFeedback();
  UseFeedback(const UseFeedback&) = delete;

 private:
  Feedback* const around_;
  std::unordered_set<std::string>* const operators_around_;
};

}  // namespace cresset::frontend
