// The table's answers about C functions (c_function_effects.h), cached for a session: classification depends only on
// the function and the type of its self.
#pragma once

#include <unordered_set>

#include "base/address_table.h"
#include "frontend/eval/hooks.h"
#include "frontend/session/subgraphs.h"
#include "frontend/trace_rules/c_function_effects.h"

namespace cresset::frontend {

class CallClassifier {
 public:
  CallClassifier(Provenance& provenance, const Subgraphs& subgraphs) : provenance_(provenance), subgraphs_(subgraphs) {}

  CCall classify(const CressetCall& call);
  // Queries: calls without arguments which return at most a number. Examples are a module's call, which asks torch
  // whether it is traced, and super(). They are classified once.
  bool is_plain_question(const CressetCall& call) const;
  void note_question(const CressetCall& call, const PyObject* result);

 private:
  Provenance& provenance_;
  const Subgraphs& subgraphs_;
  AddressTable<AddressPair, CCall> classified_;
  std::unordered_set<const void*> plain_questions_;  // function definitions found by note_question()
};

}  // namespace cresset::frontend
