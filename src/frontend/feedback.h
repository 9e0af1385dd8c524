// What a compiled function learned of its calls beside what its variants say (varying.h): which calls are done whole,
// which numbers are pinned too often, which lists grow. It is the function's own: another one, of the same code too,
// begins with none of it, so that what is compiled of a function does not depend on what ran before in the process.
// Whatever it speaks of is held, so that no address of it becomes another object's. Numbers: thresholds.h.
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

#include "frontend/py_ref.h"

namespace cresset::frontend {

// Objects by identity, held.
template <class T>
using ByObject = std::unordered_map<PyObject*, std::pair<PyRef, T>>;
struct Nothing {};

class Feedback {
 public:
  // Of the compiled function whose call this thread is in; nullptr outside of calls. Under the GIL, as all of this.
  static Feedback* current();

  // Calls and operators inside of which no piece can end (left_whole.h). kind: nullptr of an operator.
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

  // Codes that autograd has to call, and those that use it for what lives on, known and asked about
  // (left_to_autograd.h).
  ByObject<Nothing> of_autograd;
  struct Users {
    ByObject<Nothing> known, asked;
  };
  std::array<Users, 2> users;  // by UseOfAutograd

  // Values that numbers had to have, by code and operator (pins.h).
  struct Pins {
    PyRef code, keeper;
    std::unordered_set<int64_t> values;
  };
  std::map<std::pair<PyObject*, const void*>, Pins> pins;

  // Lists, deques and dictionaries in state (grown.h).
  struct Grown {
    bool closed = false, stays_open = false;
    int dropped = 0;  // how many variants that were dropped had held it to another length
  };
  ByObject<Grown> grown;
  // Of the call that is captured, which holds them: lists among its arguments that pieces do not look into; how often a
  // piece ended because the program looked into a list.
  struct OfCall {
    std::unordered_set<PyObject*> closed;
    std::unordered_map<PyObject*, int> looks;
  };
  OfCall of_call;

  // Generators that were there before a call, with weak references (outsiders.h).
  std::unordered_map<PyObject*, PyRef> outsiders;

  // How often code of cached functions did more than compute, since it last did not (cached_functions.h).
  ByObject<int> did_more;

  // Operators whose sizes were predicted wrongly (bridge/generic_rule.h).
  std::unordered_set<std::string> unpredictable;

  // Whether a full collection of garbage left tensors alive that no recipe speaks of (piece.cpp).
  bool collected_in_vain = false;

  // How much is known, to see whether something was learned.
  size_t size() const;
  // A line for each piece of it.
  std::vector<std::string> texts() const;
  void clear();
  int visit(visitproc visit, void* arg) const;
};

// For as long as it lives, this thread is in a call of the function that owns the feedback.
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
