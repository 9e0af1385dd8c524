// What a capture gives: a graph, what it holds, and where its inputs, symbols and results come from.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bridge/autograd_record.h"
#include "bridge/capture_costs.h"
#include "bridge/computed_number.h"
#include "bridge/extent.h"
#include "bridge/float_guard.h"
#include "graph/graph.h"
#include "runtime/program.h"

namespace cresset::bridge {

// What the user said of a dimension (cresset.mark_dynamic, mark_static).
struct DimMark {
  sym::Policy policy = sym::Policy::Dynamic;
  sym::Interval range = sym::Interval::size();
  bool unbacked = false;           // no decision may look at it
  std::optional<int64_t> typical;  // size for which to choose what is fast
};

// How an input's strides are known at later calls: dense in some order, or free symbols.
struct InputLayout {
  bool dense = true;           // strides follow from sizes, innermost dimension first in `order`
  std::vector<uint8_t> order;  // dims, innermost first
  bool at_start = false;       // its storage must begin with it: offsets were counted from there
  bool exact = false;          // dimensions of one element have the strides, too, that follow from sizes
};

// A value that was copied, where eager may give a view of `source` at sizes of 0 and 1 (possible_views.h).
struct ViewChoice {
  graph::ValueId source;
  bool any_view = false;  // it is one when any strides do (reshape), else when the source lies in this format,
  c10::MemoryFormat format = c10::MemoryFormat::Contiguous;
  bool as_suggested = false;  // or its strides suggest the format (to)

  // Whether a tensor that lies so is given as it is.
  bool gives_source(c10::IntArrayRef sizes, c10::IntArrayRef strides) const;
};

// How values lie, beside what their nodes say (visible_strides.h).
struct LayoutNotes {
  std::unordered_map<graph::ValueId, graph::ValueId> lies_as;  // what was written in place: as it did before
  std::unordered_map<graph::ValueId, ViewChoice> choices;
};

struct SymbolBinding {
  sym::VarId var;
  runtime::SymbolSource source;
};

// Where a captured tensor result comes from at a later call.
struct OutputSpec {
  enum class Kind : uint8_t { GraphOutput, Input, Constant } kind;
  uint32_t position = 0;
  graph::ValueId value;  // what it is in the graph as captured; invalid: the strides are eager's as they stand
  // The first result with which it shares a version counter that is not its base's (`y.data` beside `y`).
  static constexpr uint32_t kOfBase = UINT32_MAX;
  uint32_t versions = kOfBase;
  std::shared_ptr<const LayoutNotes> notes;
  bool is_view = false;  // what follows applies; the offset is from the base's first element, in elements of `dtype`
  DType dtype = DType::F32;
  std::vector<sym::ExprId> sizes, strides;
  sym::ExprId offset;
  std::vector<Extent> within;  // what gradients reach the base through, outermost first (ViewChain::within)
  bool conjugated = false, negated = false;  // when its elements are read
  bool detached = false;                     // to autograd it is no view of what requires gradients
  bool unrecorded = false;                   // it is one, made where nothing was recorded
  bool one_of_several = false;               // of an operator that gives several views: none of them may be written
  bool plain = false;                        // of what has gradients: an alias without (y.detach() beside y)
  bool leaf = false;                         // gradients are wanted of it, and it begins there: the call made it

  // The extents of `within`, then the view's own.
  std::vector<Extent> extents() const;
  at::Tensor marked(at::Tensor view) const;  // conjugated, negated
};

// A number read from tensor data while capturing: `graph` computes it from the inputs and constants.
struct DataRead {
  std::unique_ptr<graph::Graph> graph;
  at::Scalar expected;
  std::string location;
};

struct DataDependentCall;

// A branch or a loop's body: nodes of the graph that are not in its order. They may use any value that was there
// before.
struct GraphPart {
  std::vector<graph::NodeId> order;
  std::vector<DataDependentCall> calls;  // positions: in `order`
  std::vector<graph::ValueId> outputs;
  // While capturing: storages from outside, and what they hold then.
  std::vector<std::pair<uint32_t, graph::ValueId>> writes;
};

// A call that ends a stage (bridge/stages.h): what follows must wait for it. Its results are graph inputs beyond the
// caller's. Either the sizes of its results depend on data; or it is an operator of control flow
// (bridge/control_flow.h). aten::_local_scalar_dense stands for reading all elements of its argument: they are the
// values of symbols.
struct DataDependentCall {
  graph::OpId op;
  std::vector<graph::Arg> args;   // control flow: its operands, then all values from outside that its parts use
  size_t position;                // nodes of Graph::order before it
  std::vector<uint32_t> made;     // the inputs' positions
  std::vector<GraphPart> parts;   // cond: if true, if false; while_loop: condition, body
  std::vector<uint32_t> carried;  // while_loop: the graph inputs that stand for what a turn is given
};

// What computes the gradients of results that leave the call (gradients.h). It mentions any values of the graph, and
// the gradients of the results it is given.
struct Backward {
  struct Place {
    OutputSpec::Kind home;  // Input or Constant: a tensor of the caller's; else a result of the call
    uint32_t position;
    bool operator==(const Place&) const = default;
  };
  struct Group {  // leaves that the same roots lead to; both by position in the lists below
    std::vector<uint32_t> roots, leaves;
  };
  struct Passed {  // a root that others were computed from
    uint32_t root;
    std::vector<uint32_t> from;  // those
    graph::ValueId gradient;     // all that arrives at it, in the part
  };
  struct Holder {  // nodes of the record that hold tensors, which a pass lets go of: none can pass through them again
    std::vector<bool> roots, groups;  // that lead to them; that they lead to (one, where there are no groups)
  };
  // A tensor of the caller's that a pass writes (a checkpoint around BatchNorm keeps running statistics again): a graph
  // input that is what it holds when the pass begins, and what it holds then, the part's outputs after the gradients.
  struct Write {
    Place place;
    graph::ValueId live, value;
    bool unseen;  // graph::Mutation::unseen
  };
  GraphPart part;
  std::vector<Write> writes;
  std::vector<Place> roots;              // results, then tensors of the caller's that the call writes
  std::vector<graph::ValueId> tangents;  // the gradients of the roots: inputs of the graph, with their types
  std::vector<Place> leaves;
  std::vector<Group> groups;          // empty: every root leads to every leaf
  std::vector<OutputSpec> gradients;  // of the leaves: outputs of the part; Input: of the graph, a tangent or another
  std::vector<Passed> passed;
  std::vector<Holder> holders;
  bool linear = false;     // in the tangents: no functions of users take part
  bool reentrant = false;  // a reentrant checkpoint takes part, which fills `.grad` and gives no gradients apart
  std::shared_ptr<const AutogradRecord> record;  // what passes that are recorded themselves need
  // Of the part: nodes that were recorded inside of a region of autocast that a function of users' opened. Others are
  // cast for as autocast is where a backward pass is called.
  std::unordered_set<graph::NodeId> in_own_casts;
  // Whether a pass brings the value, which the forward program has not.
  bool is_of_pass(graph::ValueId v) const {
    return std::find(tangents.begin(), tangents.end(), v) != tangents.end() ||
           std::any_of(writes.begin(), writes.end(), [&](const Write& w) { return w.live == v; });
  }
  int regions_of_autocast = 0;  // that were open when it was recorded
};

// What a program stated of data: raises the message where it does not hold.
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
  std::vector<ComputedNumber> computed;  // where symbols come from
  std::vector<DataDependentCall> data_calls;
  std::vector<StatedFact> facts;
  // How far the version counter of a caller's tensor moves, beside the step that the program's own write makes.
  struct Written {
    bool is_constant;
    uint32_t position, steps;
  };
  std::vector<Written> written;
  std::shared_ptr<const Backward> backward;  // null: no result wants gradients
  int64_t operators = 0;
  int64_t shape_rule_entries = 0, generic_rule_entries = 0, shape_memo_hits = 0;
  CaptureCosts costs;
  double shape_rule_us = 0;
  bool reentrant = false;                // Backward::reentrant
  std::shared_ptr<AutogradNotes> notes;  // while capturing, where gradients may be wanted

  // What Capture::interpret needs of it, should the compiled program turn out to be of no use.
  Captured for_one_run() const;
};

}  // namespace cresset::bridge
