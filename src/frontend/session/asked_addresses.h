// Results of id() and hash() for objects that differ at each call. Looking such a number up in a container asks for the
// object's identity (identity_log.h). If the program computes with the number or stores it, the entry serves only this
// object. From the next capture on the id() call then runs between two segments, and the number is an input.
//
// Invariant: the numbers and their objects are alive while the segment is open.
#pragma once

#include <unordered_map>

#include "frontend/eval/hooks.h"
#include "frontend/session/open_segment.h"
#include "frontend/session/provenance.h"
#include "frontend/trace_rules/c_function_effects.h"

namespace cresset::frontend {

class AskedAddresses {
 public:
  AskedAddresses(OpenSegment& segment, Provenance& provenance) : segment_(segment), provenance_(provenance) {}

  void begin() { addresses_.clear(); }
  bool any_addresses() const { return !addresses_.empty(); }
  // Whether the program received this int as the address of an object which differs at each call.
  bool is_address(PyObject* number) const { return addresses_.count(number) != 0; }
  // After a call of id() or hash(): whether the hooks must report all operators from now on.
  bool note_address(const CressetActivation& activation, const CressetCall& call, PyObject* number);
  // The address outlives the segment. From the next capture on the call of id() runs between two segments. Returns
  // whether this is new.
  bool leave_address(PyObject* number);
  // Looks an address up in a container which may hold addresses of other objects of this call.
  void note_key_by_address(PyObject* container, PyObject* number, bool found);
  void use_addresses(const CressetOperator& op);
  void use_addresses(const CCall& what, const CressetCall& call);

 private:
  void compute_with_address(PyObject* number);
  void compare_addresses(PyObject* left, PyObject* right);

  OpenSegment& segment_;
  Provenance& provenance_;
  std::unordered_map<PyObject*, AskedAddress> addresses_;
};

// Whether an object has no contents that are the same at each call.
ConstantArrays::Varies what_varies(const Provenance& provenance, const AskedAddresses& addresses);

}  // namespace cresset::frontend
