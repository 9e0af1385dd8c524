// The part of a schedule that every device needs: which loops there are, which one runs along lanes, on which level and
// in which pass each scalar is computed. Plain data over the kernel's expressions; backends add how the loops are run.
//
// Loops are in nest order, outer ones first. Lanes run along the vector loop:
//   Vector loop inner: it is the last loop; lanes are folded together at a row's end.
//   Vector loop outer: it is the last outer loop; row scalars and accumulators are vectors. A pointwise kernel is the
//   case with no inner loops.
#pragma once

#include <string>
#include <vector>

#include "loop/analysis.h"
#include "loop/collapse.h"
#include "loop/kernel.h"

namespace cresset::codegen {

using loop::ExprId;
using loop::Loop;
using loop::ScalarId;
using loop::VarId;

// An index expression as the emitter wants it. With a valid `coefficient`: expr == coefficient * v + rest for the
// vector variable v, and neither part mentions v. Bound scalars may still make the parts vectors.
struct IndexForm {
  ExprId expr;
  ExprId coefficient;
  ExprId rest;
};

struct KernelPlan {
  std::vector<Loop> loops;  // nest order
  size_t vector = 0;        // index into loops
  // Another outer loop whose points are computed inside of the vector loop's (tiles of transposed access).
  size_t tile = kNoTile;
  static constexpr size_t kNoTile = ~size_t{0};

  std::vector<IndexForm> scalar_index;  // by scalar: Load address or Size value, over the nest's variables
  std::vector<IndexForm> store_index;   // by store
  IndexForm position;                   // row-major position over the kernel's inner dims

  // Depth d: computable inside loops of depth <= d. 0: before all items. 1: once an item. The vector loop and the inner
  // loops follow, one depth each.
  std::vector<uint16_t> depth;               // by scalar
  std::vector<uint8_t> is_vector;            // by scalar: differs between lanes
  std::vector<uint8_t> live;                 // by scalar
  std::vector<std::vector<uint8_t>> needed;  // [pass][scalar]: computed inside the inner loops of that pass
  std::vector<uint8_t> store_in_row;         // by store: happens once an outer point, after all passes
  std::vector<ScalarId> spilled;             // kept from the first pass that computes them
  std::vector<uint16_t> spilled_first;       // that pass
  std::vector<ExprId> unsigned_division;     // FloorDiv/Mod nodes with operands proved >= 0 (sorted by id)
  loop::Analysis analysis;

  bool has_tile() const { return tile != kNoTile; }
  bool vector_is_inner() const { return loops[vector].inner; }
  uint16_t row_depth() const { return vector_is_inner() ? 1 : 2; }
  size_t first_inner() const;              // index into loops; loops.size() when there are none
  uint16_t loop_depth(size_t loop) const;  // of what is inside this loop
};

// Transcendental operators: dear enough to keep their values for another pass.
bool is_heavy(loop::Op op);

// The steps of planning that do not depend on the device, over a plan that the backend derives from KernelPlan.
class Planner {
 public:
  Planner(const loop::Kernel& kernel, KernelPlan& plan)
      : kernel_(kernel), env_(kernel.env()), pool_(env_.pool()), plan_(plan) {}

 protected:
  size_t count() const { return kernel_.scalars.size(); }
  const loop::Scalar& scalar(size_t i) const { return kernel_.scalars[i]; }
  VarId vector_var() const { return plan_.loops[plan_.vector].var; }

  void collapse();                     // analysis and space_; an outer loop of one point where there is none
  void set_loops(const Loop& vector);  // nest order around this vector loop
  void find_live();
  void find_levels();  // depth, is_vector, index forms, store_in_row: after set_loops
  void prove_unsigned();
  std::vector<uint8_t> needed_in(uint16_t pass);  // by scalar: inside the inner loops of that pass
  ExprId product_of(bool inner, bool with_vector);
  const loop::IndexSpace& space() const { return space_; }

  const loop::Kernel& kernel_;
  sym::ShapeEnv& env_;
  sym::ExprPool& pool_;
  KernelPlan& plan_;

 private:
  void add_dummy_loop();
  IndexForm index_form(ExprId e);
  void levels_of(ExprId e, uint16_t& depth, bool& vector);
  bool reloaded_in(size_t scalar, uint16_t pass) const;
  void prove_unsigned(ExprId e);
  bool is_not_negative(ExprId e);

  loop::IndexSpace space_;
};

// What the plan decided, over the kernel's canonical names: one line a loop, index expression and kept scalar.
std::string plan_text(const loop::Kernel& kernel, const KernelPlan& plan);

}  // namespace cresset::codegen
