// The result of a capture: a graph, its constants, and the sources of its inputs, symbols and results.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bridge/aten/extent.h"
#include "bridge/capture/autograd_notes.h"
#include "bridge/capture/capture_costs.h"
#include "bridge/symbolic/derived_integers.h"
#include "bridge/symbolic/float_guard.h"
#include "bridge/symbolic/view_or_copy.h"
#include "graph/graph.h"
#include "runtime/program.h"

namespace cresset::bridge {

// The user's mark on a dimension (cresset.mark_dynamic, mark_static).
struct DimMark {
  sym::Policy policy = sym::Policy::Dynamic;
  sym::Interval range = sym::Interval::size();
  bool unbacked = false;           // no decision may depend on the size
  std::optional<int64_t> typical;  // the size for which the compiler optimizes
};

// How later calls determine an input's strides: dense in some order, or as free symbols.
struct InputLayout {
  bool dense = true;           // strides follow from sizes, innermost dimension first in `order`
  std::vector<uint8_t> order;  // dims, innermost first
  bool at_start = false;       // the tensor begins its storage: offsets count from there
  bool exact = false;          // dimensions of one element also have the strides which follow from sizes
};

// Whether eager mode returns a source of this layout unchanged.
bool gives_source(const ViewChoice& choice, c10::IntArrayRef sizes, c10::IntArrayRef strides);

// Layouts of values beyond the strides in their nodes (visible_strides.h).
struct LayoutNotes {
  std::unordered_map<graph::ValueId, graph::ValueId> lies_as;  // value of a write -> the earlier value with its layout
  std::unordered_map<graph::ValueId, ViewChoice> choices;
  std::unordered_set<graph::ValueId> parts_of_copies;  // views of these values, given as views of their sources
  // Values read from a view with a conjugate or negative bit: ATen clones such a view for an operator without support.
  std::unordered_set<graph::ValueId> clones;
};

struct SymbolBinding {
  sym::VarId var;
  runtime::SymbolSource source;
};

// The source of a captured tensor result in later calls.
struct OutputSpec {
  enum class Kind : uint8_t { GraphOutput, Input, Constant } kind;
  uint32_t position = 0;
  graph::ValueId value;  // its value in the captured graph; invalid: the strides already are eager mode's
  std::shared_ptr<const LayoutNotes> notes;
  bool is_view = false;  // the fields below apply; the offset is from the base's first element, in elements of `dtype`
  DType dtype = DType::F32;
  std::vector<sym::ExprId> sizes, strides;
  sym::ExprId offset;
  std::vector<Extent> within;  // gradients reach the base through these, outermost first (ViewChain::within)
  bool conjugated = false, negated = false;  // lazily, by the conjugate and negative bits
  bool detached = false;        // autograd does not treat it as a view of a tensor which requires gradients
  bool unrecorded = false;      // autograd treats it as a view made in no_grad mode
  bool of_unrecorded = false;   // a recorded view of a view made in no_grad mode: no gradient reaches the base
  bool one_of_several = false;  // result of an operator with several views: autograd forbids writes to each of them
  bool plain = false;           // an alias without gradients of a result with gradients (y.detach() beside y)
  bool hidden_alias = false;    // shares memory with a caller's tensor, with a history of its own: no later call has it
  bool leaf = false;            // requires gradients and is a leaf which the call made
  bool inference = false;       // an inference tensor, also where its base is an ordinary tensor (x.view(dtype))

  // The first result with which it shares a version counter other than its base's (`y.data` beside `y`).
  static constexpr uint32_t kOfBase = UINT32_MAX;
  uint32_t versions = kOfBase;

  // The result of which autograd has this result as a view (`y[0].t()` beside `y[0]`).
  uint32_t viewed = kOfBase;
  // One of several views: their node and the number of this view, which autograd's messages name.
  std::string node;
  uint32_t number = 0;

  // The extents of `within`, then the extent of the view itself.
  std::vector<Extent> extents() const;
  at::Tensor marked(at::Tensor view) const;  // applies the conjugate and negative bits
};

// A number read from tensor data while capturing. `graph` computes it from the inputs and constants.
struct DataRead {
  std::unique_ptr<graph::Graph> graph;
  at::Scalar expected;
  std::string location;
};

struct DataDependentCall;

// A subgraph: a branch, or the condition or body of a loop. Its nodes are not in the graph's order. They may use any
// value which existed before.
struct Subgraph {
  std::vector<graph::NodeId> order;
  std::vector<DataDependentCall> calls;  // positions count in `order`
  std::vector<graph::ValueId> outputs;
  // During capture only: outer storages and their contents at the end of the subgraph.
  std::vector<std::pair<uint32_t, graph::ValueId>> writes;
};

// A call which ends a stage (bridge/executor/staged_program.h): later nodes wait for it. Its results are graph inputs
// after the caller's inputs. The call has data-dependent result sizes, or is a control-flow operator
// (bridge/capture/control_flow.h). aten::_local_scalar_dense stands for reading all elements of its argument, which
// become the values of symbols.
struct DataDependentCall {
  graph::OpId op;
  std::vector<graph::Arg> args;   // control flow: operands, then all outer values which the subgraphs use
  size_t position;                // number of nodes of Graph::order before the call
  std::vector<uint32_t> made;     // positions of the inputs which hold its results
  std::vector<Subgraph> parts;    // cond: if true, if false; while_loop: condition, body
  std::vector<uint32_t> carried;  // while_loop: graph inputs which hold the carried tensors of an iteration
};

// The gradient computation of results which leave the call (gradients.h). It may use any value of the graph and the
// gradients of the results.
struct Backward {
  struct Place {
    OutputSpec::Kind home;  // Input or Constant: a tensor of the caller; else a result of the call
    uint32_t position;
    bool operator==(const Place&) const = default;
  };
  struct Group {  // leaves reachable from the same roots; both as positions in the lists below
    std::vector<uint32_t> roots, leaves;
  };
  struct Intermediate {  // an intermediate output: a root from which other roots were computed
    uint32_t root;
    std::vector<uint32_t> from;  // the roots computed from it
    graph::ValueId gradient;     // its whole incoming gradient, a value of the subgraph
  };
  struct Holder {  // autograd nodes with saved tensors; a pass releases them, so no second pass can follow
    // Roots which lead to the nodes, and groups to which the nodes lead (one entry if there are no groups).
    std::vector<bool> roots, groups;
  };
  // A caller's tensor which a pass writes: a checkpoint around BatchNorm updates running statistics again. `live` is a
  // graph input with the contents at the start of the pass. `value`, the contents after it, follows the gradients in
  // the subgraph's outputs.
  struct Write {
    Place place;
    graph::ValueId live, value;
    bool unseen;  // graph::Mutation::unseen
  };
  Subgraph part;
  std::vector<Write> writes;
  std::vector<Place> roots;              // results, then the caller's tensors which the call writes
  std::vector<graph::ValueId> tangents;  // gradients of the roots: graph inputs with their types
  std::vector<Place> leaves;
  std::vector<Group> groups;          // empty: every root leads to every leaf
  std::vector<OutputSpec> gradients;  // of the leaves: outputs of the subgraph; Input: a graph input (a tangent)
  std::vector<Intermediate> intermediates;
  std::vector<Holder> holders;
  bool linear = false;     // linear in the tangents: no user-defined functions take part
  bool reentrant = false;  // contains a reentrant checkpoint, which fills `.grad` and returns no gradients
  std::shared_ptr<const AutogradRecord> record;  // needed by double-backward passes
  // Nodes recorded inside an autocast region which a user's function opened. All other nodes follow the autocast state
  // at the call of the backward pass.
  std::unordered_set<graph::NodeId> in_own_casts;
  // Whether the value is supplied by a backward pass and unknown to the forward program.
  bool is_of_pass(graph::ValueId v) const {
    return std::find(tangents.begin(), tangents.end(), v) != tangents.end() ||
           std::any_of(writes.begin(), writes.end(), [&](const Write& w) { return w.live == v; });
  }
  int regions_of_autocast = 0;  // number of autocast regions open during recording
};

// A condition on data which the program states; a violation raises the message.
struct StatedFact {
  sym::ExprId condition;
  std::string message;
};

struct Captured {
  std::unique_ptr<graph::Graph> graph;
  std::vector<at::Tensor> constants;
  std::vector<SymbolBinding> symbols;
  std::vector<InputLayout> input_layouts;
  std::vector<OutputSpec> outputs;
  std::vector<DataRead> data_reads;
  std::vector<FloatGuard> float_guards;
  std::vector<DerivedInteger> computed;  // definitions of derived integers
  std::vector<DataDependentCall> data_calls;
  std::vector<StatedFact> facts;
  // Steps of the version counter of a caller's tensor, beside the step of the program's own write.
  struct Written {
    bool is_constant;
    uint32_t position, steps;
  };
  std::vector<Written> written;
  std::shared_ptr<const Backward> backward;  // null: no result requires gradients
  int64_t operators = 0;
  int64_t shape_rule_entries = 0, generic_rule_entries = 0, shape_memo_hits = 0;
  CaptureCosts costs;
  double shape_rule_us = 0;
  bool reentrant = false;                // Backward::reentrant
  std::shared_ptr<AutogradNotes> notes;  // during capture, where gradients may be wanted

  // The members which Capture::interpret needs if the compiled program turns out to be useless.
  Captured for_one_run() const;
};

}  // namespace cresset::bridge
