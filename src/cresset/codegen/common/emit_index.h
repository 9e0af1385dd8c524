// Emits symbolic index expressions as code: in 64 bits, or in 32 bits where the launch has checked that they fit.
#pragma once

#include <functional>
#include <optional>

#include "codegen/common/emit_state.h"

namespace cresset::codegen {

class IndexEmitter {
 public:
  explicit IndexEmitter(EmitState& state) : s_(state) {}
  virtual ~IndexEmitter() = default;

  // Emitted values are reused later in the same scope, a loop's body. Index expressions share parts, and each load,
  // pass and tail emits them again.
  size_t scope() const { return known_.size(); }
  void leave(size_t scope) { known_.resize(scope); }
  // Emits the parts of index expressions which depend on no loop deeper than `depth`.
  void prepare(uint16_t depth);

  // Of the state's index_bits, or of 64 when it mentions a scalar's value; a vector when lanes differ.
  llvm::Value* emit(ExprId expr);
  // The same, using the linear form in the vector variable.
  llvm::Value* emit(const IndexForm& form);

  // Strided: step() elements apart, close enough to read or write all elements in between.
  enum class Access { Uniform, Contiguous, Strided, Scattered };
  // Classifies the addresses of the lanes. `offset`: of every lane for Scattered, else of lane 0 (i64).
  Access access(const IndexForm& form, llvm::Value*& offset);
  int step(const IndexForm& form) const;  // of a Strided access: -1 or 2 to 4; 0 otherwise

  // Lanes whose addresses are `step` (-1, 1 to 4) elements apart where `holds` (i1), starting at `first` in lane 0. If
  // an index divides by more than the number of lanes, most neighbours have the same quotient.
  struct Run {
    llvm::Value* first;
    int step;
    llvm::Value* holds;
  };
  std::optional<Run> run(const IndexForm& form);
  // Emits two blocks and selects between their values by a condition shared by all lanes.
  llvm::Value* where(llvm::Value* condition, const std::function<llvm::Value*()>& then,
                     const std::function<llvm::Value*()>& otherwise);
  // The same as emit(form), but fast where lanes are neighbours.
  llvm::Value* emit_in_runs(const IndexForm& form);

 protected:
  // FloorDiv or Mod.
  virtual llvm::Value* division(ExprId expr, llvm::Value* a, llvm::Value* b);
  EmitState& s_;

 private:
  struct About {
    std::vector<VarId> vars;
    bool vector = false;  // mentions the vector variable
    bool bound = false;   // mentions a scalar's value
    uint16_t depth = 0;   // of the deepest loop on which it depends
  };
  struct Known {
    ExprId expr;
    int lanes;
    std::vector<llvm::Value*> vars;  // the variables' values at emission, in About's order
    llvm::Value* value;
  };

  struct Division {
    ExprId expr, over, by;
    int64_t step;  // of `over`, from lane to lane
  };
  using Divisions = std::vector<Division>;

  const About& about(ExprId expr);
  llvm::Value* known(ExprId expr, const About& about, int lanes) const;
  bool is_vector(ExprId expr);
  llvm::Value* variable(VarId var);
  llvm::Value* fold_operands(ExprId expr);
  llvm::Value* combine(ExprId expr, llvm::Value* a, llvm::Value* b);
  void match(llvm::Value*& a, llvm::Value*& b);
  llvm::Value* divide_by_reciprocal(llvm::Value* a, llvm::Value* b, bool is_mod);
  llvm::Value* relation(llvm::CmpInst::Predicate predicate, llvm::Value* a, llvm::Value* b);
  llvm::Value* truth(llvm::Value* v);
  std::optional<int64_t> lane_step(ExprId expr, Divisions& divisions);
  std::optional<int64_t> step_of_sum(ExprId expr, Divisions& divisions);
  std::optional<int64_t> step_of_product(ExprId expr, Divisions& divisions);
  std::optional<int64_t> step_of_division(ExprId expr, Divisions& divisions);
  llvm::Value* stays_inside(const Division& division, llvm::Value* last);
  llvm::Value* last_lane();

  std::unordered_map<ExprId, About> about_;
  std::vector<Known> known_;
};

}  // namespace cresset::codegen
