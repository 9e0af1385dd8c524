// Expressions compiled to a flat list of register operations which runs at each call: shapes, offsets, guards.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sym/expr.h"

namespace cresset::sym {

// Evaluates a fixed list of expressions over a slot array. The program is plain, serializable data.
class SizeProgram {
 public:
  // Const: value. Var: slot a. Add: r[a] + value * r[b]. Eq, Ne, Lt, Le: r[a] against r[b] + value. Other kinds: r[a]
  // op r[b].
  struct Instr {
    Kind kind;
    uint32_t a = 0, b = 0;
    int64_t value = 0;
  };

  // Output i of run() is expression i. `slot_of` maps each mentioned variable to its slot (CHECKed).
  static SizeProgram compile(const ExprPool& pool, std::span<const ExprId> outputs,
                             const std::unordered_map<VarId, uint32_t>& slot_of);

  // Builds a program from the results of instrs() and outputs(). The program is empty when they are malformed.
  static SizeProgram from_parts(std::vector<Instr> instrs, std::vector<uint32_t> outputs);

  size_t output_count() const { return outputs_.size(); }
  // `slots`: values of the variables. `out`: output_count() values. Division by zero yields 0; guards with a division
  // are accompanied by guards that the divisor is not zero.
  void run(const int64_t* slots, int64_t* out) const;
  // Runs the program and returns the index of the first output which is 0 or whose numbers leave 64 bits, or -1. Guards
  // are checked in this form.
  int64_t first_zero(const int64_t* slots) const;

  // Returns expression `output`, read back from the instructions. The index of each variable is its slot.
  ExprId decompile(ExprPool& pool, size_t output) const;

  const std::vector<Instr>& instrs() const { return instrs_; }
  const std::vector<uint32_t>& outputs() const { return outputs_; }

 private:
  std::vector<Instr> instrs_;      // instruction i writes register i
  std::vector<uint32_t> outputs_;  // register of each output
};

}  // namespace cresset::sym
