// The backward subgraph of a capture: the autograd graph, run once on trace tensors.
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_set>

#include "bridge/aten/autograd_history.h"
#include "bridge/autograd/autograd_record.h"
#include "bridge/autograd/engine_state.h"
#include "bridge/autograd/gradients.h"
#include "bridge/autograd/leaf_groups.h"
#include "bridge/autograd/leaf_order.h"
#include "bridge/capture/control_flow.h"
#include "bridge/capture/dead_data_calls.h"
#include "bridge/symbolic/size_oblivious.h"

namespace cresset::bridge {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;

// The kinds of hooks at a node: Python functions, or others.
struct Hooks {
  explicit Hooks(Node& node) {
    add(node.pre_hooks(), "17PyFunctionPreHook");
    add(node.tensor_pre_hooks(), "23PyFunctionTensorPreHook");
    add(node.post_hooks(), "18PyFunctionPostHook");
  }
  bool python = false, others = false;

 private:
  template <class List>
  void add(const List& hooks, std::string_view of_python) {
    for (const auto& hook : hooks) (is_class(*hook, of_python) ? python : others) = true;
  }
};

// Whether the call made the tensor.
bool is_own(const at::Tensor& t) { return TraceTensor::from(t) == t.unsafeGetTensorImpl(); }

// Whether hooks at the leaf observe the arrival of its gradient.
bool has_hooks(Node& leaf) {
  return !leaf.tensor_pre_hooks().empty() || !leaf.pre_hooks().empty() || !leaf.post_hooks().empty() ||
         leaf.tensor_post_acc_grad_hooks() != nullptr;
}

// A hook where the autograd graph ends: notes the arrival of the run.
class Arrival final : public torch::autograd::FunctionPreHook {
 public:
  Arrival(const Node* node, std::vector<const Node*>& arrived) : node_(node), arrived_(arrived) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    arrived_.push_back(node_);
    return gradients;
  }

 private:
  const Node* node_;
  std::vector<const Node*>& arrived_;
};

// While the autograd graph runs for the capture, the caller's nodes at its end only receive their gradients. No hook
// observes the gradients, no node behind them runs, and the leaves have the sizes of their proxy tensors.
class Ends {
 public:
  void add(const Edge& edge, const at::Tensor& leaf) {
    if (!is_own(leaf)) {  // an own leaf already has symbolic sizes
      const at::Tensor real = InputProxy::alias_of(leaf);
      shapes_.push_back({edge, (real.defined() ? real : leaf).sizes().vec()});
      set_shape(edge, leaf.sym_sizes());
    }
    for (const Kept& kept : kept_)
      if (kept.node == edge.function.get()) return;
    Kept& kept = kept_.emplace_back();
    kept.node = edge.function.get();
    kept.next.swap(kept.node->next_edges());
    kept.pre.swap(kept.node->tensor_pre_hooks());
    kept.retains.swap(kept.node->retains_grad_hooks());
    kept.node->tensor_pre_hooks().push_back(std::make_unique<Arrival>(kept.node, arrived_));
  }
  // The position at which the run arrived at the edge.
  size_t arrival(const Edge& edge) const {
    return static_cast<size_t>(std::find(arrived_.begin(), arrived_.end(), edge.function.get()) - arrived_.begin());
  }
  ~Ends() {
    for (Kept& kept : kept_) {
      kept.next.swap(kept.node->next_edges());
      kept.pre.swap(kept.node->tensor_pre_hooks());
      kept.retains.swap(kept.node->retains_grad_hooks());
    }
    for (const Shape& shape : shapes_) set_shape(shape.edge, c10::fromIntArrayRefSlow(shape.plain));
  }
  Ends() = default;
  Ends(const Ends&) = delete;

 private:
  struct Kept {
    Node* node = nullptr;
    torch::autograd::edge_list next;
    std::vector<std::unique_ptr<torch::autograd::FunctionPreHook>> pre;
    std::unordered_map<size_t, std::unique_ptr<torch::autograd::FunctionPreHook>> retains;
  };
  struct Shape {
    Edge edge;
    std::vector<int64_t> plain;
  };
  static void set_shape(const Edge& edge, c10::SymIntArrayRef sizes) {
    const auto& metadata = edge.function->input_metadata(edge.input_nr);
    if (metadata.was_default_constructed() || metadata.is_nested_tensor()) return;
    auto& shape = const_cast<torch::autograd::InputMetadata&>(metadata).mutable_shape_as_dim_vector();
    shape.assign(sizes.begin(), sizes.end());
  }

  std::vector<Kept> kept_;
  std::vector<Shape> shapes_;
  std::vector<const Node*> arrived_;
};

}  // namespace

// The caller's tensors, and the edges at which their autograd graph ends.
struct GradientRecorder::Leaves {
  struct Leaf {
    at::Tensor tensor;
    Edge edge;
    Backward::Place place;
    bool reached = false;
  };
  std::vector<Leaf> all;
  const std::vector<at::Tensor>& results;
  std::unordered_set<const Node*>
      retained{};  // gradients retained before the call: a matter of autograd, not of the captured program

  Leaf* find(const Edge& edge) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Leaf& l) { return l.edge == edge; });
    return found != all.end() ? &*found : nullptr;
  }
};

namespace {

// Whether autograd sees neither a tensor nor a view which requires gradients: y.detach().
bool is_apart(const at::Tensor& t) { return !t.requires_grad() && (!t.is_view() || !t._base().requires_grad()); }

// Autograd records a view anew from its base at each call, without Python functions on the way. Lists the nodes of
// these functions.
void add_python_on_the_way(const at::Tensor& view, const at::Tensor& base, std::vector<Node*>& out) {
  if (view.is_same(base)) return;
  const Node* const end = torch::autograd::impl::gradient_edge(base).function.get();
  constexpr int kMost = 1000;
  Node* node = view.grad_fn().get();
  for (int i = 0; i < kMost && node != nullptr && node != end; ++i) {
    const Hooks hooks(*node);
    if (is_python_function(*node) || hooks.python || hooks.others) out.push_back(node);
    const auto& edges = node->next_edges();
    const auto next = std::find_if(edges.begin(), edges.end(), [](const Edge& edge) { return edge.is_valid(); });
    node = next != edges.end() ? next->function.get() : nullptr;
  }
}

// The tensor of which all others are views, also for autograd; undefined when they only share memory.
at::Tensor common_base(const std::vector<at::Tensor>& sharing) {
  const auto root = std::find_if_not(sharing.begin(), sharing.end(), is_apart);
  if (root == sharing.end()) return {};
  at::Tensor base = *root;
  if (base.is_view()) base = base._base();
  const TraceTensor* trace = TraceTensor::from(base);
  if (trace == nullptr || trace != base.unsafeGetTensorImpl()) return {};
  for (const at::Tensor& t : sharing) {
    const bool belongs = t.is_same(base) || (t.is_view() && t._base().is_same(base));
    if (!is_apart(t) && (!belongs || !t.requires_grad())) return {};
  }
  return base;
}

}  // namespace

// Reports nodes whose functions must run eagerly: run_record learns about them from a run which fails.
void GradientRecorder::defer_to_autograd(const std::vector<Node*>& python) {
  try {
    capture_.client().run_record(python, [] { abort_capture(BreakKind::AutogradFeature, "autograd's"); });
  } catch (const std::exception&) {
    return;
  }
}

// Makes the tensor the base of its memory. It is no view for autograd, although the memory has another shape (as for a
// product with more than two dimensions). Returns false where the tensor does not cover its memory row by row.
bool GradientRecorder::owns_memory(const at::Tensor& base) {
  TraceTensor& trace = *TraceTensor::from(base);
  if (trace.chain() == nullptr) return true;
  if (trace.is_conj() || trace.is_neg()) return false;
  Storage& storage = capture_.storages()[trace.storage_id().index];
  if (storage.home != OutputSpec::Kind::GraphOutput) return false;
  sym::ExprPool& pool = capture_.env().pool();
  const graph::TensorType &type = trace.type(), &whole = capture_.graph().type(storage.value);
  const std::vector<sym::ExprId> rows = graph::contiguous_strides(pool, type.sizes);
  const auto same = [&](sym::ExprId a, sym::ExprId b) { return capture_.env().known_equal(a, b); };
  if (type.dtype != whole.dtype || !pool.is_const(capture_.env().simplify(trace.offset()), 0) ||
      !same(graph::numel(pool, type.sizes), graph::numel(pool, whole.sizes)))
    return false;
  if (!std::equal(rows.begin(), rows.end(), type.strides.begin(), same)) return false;
  storage.value = capture_.value_of(trace);
  trace.chain_ = nullptr;
  return true;
}

// The results which need a history of their own: among results with shared memory, the base of the views.
std::vector<at::Tensor> GradientRecorder::differentiable(const std::vector<at::Tensor>& results, std::string& why) {
  std::vector<at::Tensor> roots;
  std::vector<Node*> on_the_way;
  std::unordered_map<uint32_t, std::vector<at::Tensor>> sharing;
  for (const at::Tensor& result : results)
    if (const TraceTensor* trace = TraceTensor::from(result)) sharing[trace->storage_id().index].push_back(result);
  std::unordered_set<uint32_t> done;
  for (const at::Tensor& result : results) {
    const TraceTensor* trace = TraceTensor::from(result);
    if (!result.requires_grad() || trace == nullptr || trace != result.unsafeGetTensorImpl()) continue;
    const uint32_t storage = trace->storage_id().index;
    if (capture_.storages().is_callers(*trace)) {  // a view, which autograd records anew at each call
      const at::Tensor base =
          result.is_view() ? at::Tensor(result._base()) : result;  // x.detach().requires_grad_() does not depend on x
      add_python_on_the_way(result, base, on_the_way);
      if (is_own(base) && gradient_node(base) == nullptr) {
        if (base.is_same(result) && !result.is_view())
          own_leaves_.push_back(result);
        else
          why = "a result is a view of a leaf that the call made";
      } else if (is_own(base)) {
        why = "a result in the memory of a caller's tensor has a history of its own";
      }
      continue;
    }
    at::Tensor root = result;
    if (sharing[storage].size() > 1) {
      if (!done.insert(storage).second) continue;
      root = common_base(sharing[storage]);
      if (!root.defined() || !owns_memory(root)) {
        why = "results share memory that autograd does not know to be one";
        continue;
      }
      for (const at::Tensor& t : sharing[storage])
        if (t.requires_grad()) add_python_on_the_way(t, root, on_the_way);
    }
    if (gradient_node(root) != nullptr) {
      roots.push_back(std::move(root));
      continue;
    }
    const auto is_root_or_plain = [&](const at::Tensor& t) { return t.is_same(root) || is_apart(t); };
    if (root.is_same(result) && std::all_of(sharing[storage].begin(), sharing[storage].end(), is_root_or_plain))
      own_leaves_.push_back(result);
    else
      why = "a result is a view of a leaf that the call made";
  }
  if (!on_the_way.empty()) {
    why = "a result is a view that a function of Python's has to do with";
    if (capture_.client().runs_python_autograd()) defer_to_autograd(on_the_way);
  }
  return roots;
}

// Returns an obstacle to capturing the gradients, or an empty string. `python` receives the nodes which run Python
// functions.
std::string GradientRecorder::obstacle_to_gradients(const std::vector<at::Tensor>& roots, Leaves& leaves,
                                                    std::vector<Node*>& python) {
  std::unordered_set<const Node*> seen;
  std::vector<Node*> left;
  const auto add = [&](Node* node) {
    if (node != nullptr && seen.insert(node).second) left.push_back(node);
  };
  std::unordered_map<const Node*, std::vector<Leaves::Leaf*>> ends;
  for (Leaves::Leaf& leaf : leaves.all) ends[leaf.edge.function.get()].push_back(&leaf);
  for (const at::Tensor& root : roots) add(root.grad_fn().get());
  const auto gives_result = [&](const Node* node) {
    return std::any_of(leaves.results.begin(), leaves.results.end(),
                       [&](const at::Tensor& t) { return gradient_node(t) == node; });
  };
  bool any = false;
  while (!left.empty()) {
    Node* node = left.back();
    left.pop_back();
    if (const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node)) {
      if (!is_own(leaf->variable) || has_hooks(*node)) return "a leaf that the call made takes part";
      continue;  // its gradient is not observed
    }
    const bool is_python = is_python_function(*node);
    if (is_python && !capture_.client().runs_python_autograd())
      return "a function of Python's, " + node->name() + ", computes them";
    const Hooks hooks(*node);
    const bool is_retained =
        !node->retains_grad_hooks().empty() && gives_result(node) && !leaves.retained.contains(node);
    retained_gradients_ |= is_retained;
    if (is_retained || hooks.others || (hooks.python && !capture_.client().runs_python_autograd()))
      return "a hook waits for one of them";
    if (is_python || hooks.python) python.push_back(node);
    for (const Edge& edge : node->next_edges()) {
      const auto found = ends.find(edge.function.get());
      Leaves::Leaf* end = nullptr;
      if (found != ends.end())
        for (Leaves::Leaf* leaf : found->second)
          if (leaf->edge == edge) end = leaf;
      if (end == nullptr) {
        add(edge.function.get());
      } else {
        any = end->reached = true;
      }
    }
  }
  return any ? "" : "they lead to nothing that the caller has";
}

namespace {

struct Reached {
  Edge edge;
  Backward::Place place;
  at::Tensor gradient;
};

// Adds the leaves which have gradients, in the order in which the run of the autograd graph arrived at them.
std::vector<at::Tensor> add_leaves(Backward& backward, AutogradRecord& record, const std::vector<at::Tensor>& roots,
                                   const Ends& ends, std::vector<Reached> leaves) {
  std::stable_sort(leaves.begin(), leaves.end(),
                   [&](const Reached& a, const Reached& b) { return ends.arrival(a.edge) < ends.arrival(b.edge); });
  std::vector<Edge> edges;
  for (const Reached& leaf : leaves) edges.push_back(leaf.edge);
  backward.groups = leaf_groups(roots, edges);
  arrange(backward.groups, edges);
  backward.holders = holders(roots, edges, backward.groups);
  // Each root has a node of its own: a pass from one keeps the saved tensors of another, and calls none of its hooks.
  if (backward.groups.empty() && roots.size() > 1) {
    Backward::Group& all = backward.groups.emplace_back();
    for (uint32_t i = 0; i < roots.size(); ++i) all.roots.push_back(i);
    for (uint32_t i = 0; i < leaves.size(); ++i) all.leaves.push_back(i);
    arrange(backward.groups, edges);
  }
  std::vector<size_t> order(leaves.size());
  std::iota(order.begin(), order.end(), 0);
  if (backward.groups.empty()) order = as_edges(edges);
  std::vector<at::Tensor> gradients;
  const std::vector<bool> behind_writes = behind_written_views(roots, edges);
  for (const size_t i : order) {
    backward.leaves.push_back(leaves[i].place);
    record.behind_writes.push_back(behind_writes[i]);
    gradients.push_back(leaves[i].gradient);
  }
  return gradients;
}

std::unordered_set<graph::ValueId> computed_in(const graph::Graph& graph, const Subgraph& part) {
  std::unordered_set<graph::ValueId> computed;
  for (const graph::NodeId id : part.order)
    for (const graph::ValueId v : graph.node(id).results) computed.insert(v);
  return computed;
}

// Makes outputs of the subgraph of the values from which gradients are made.
void keep_outputs(Backward& backward, const std::vector<graph::ValueId>& outputs) {
  std::unordered_map<uint32_t, uint32_t> kept;
  for (OutputSpec& spec : backward.gradients) {
    if (spec.kind != OutputSpec::Kind::GraphOutput) continue;
    const auto [at, fresh] = kept.try_emplace(spec.position, static_cast<uint32_t>(backward.part.outputs.size()));
    if (fresh) backward.part.outputs.push_back(outputs[spec.position]);
    spec.position = at->second;
  }
}

}  // namespace

namespace {

// Version counters, restored when a recording is abandoned: it has counted its writes for real.
class Versions {
 public:
  void add(const at::Tensor& t) {
    if (!t.is_inference()) counted_.emplace_back(t, version_of(t));
  }
  void restore() const {
    for (const auto& [tensor, version] : counted_)
      if (version_of(tensor) != version) {
        c10::VariableVersion counter = tensor.unsafeGetTensorImpl()->version_counter();
        counter.set_version(version);
      }
  }

 private:
  std::vector<std::pair<at::Tensor, uint32_t>> counted_;
};

}  // namespace

// The value from which the root has its history: its own value, or the one before writes of which autograd knows
// nothing (in no_grad mode, through x.data).
static graph::ValueId value_with_history(Capture& capture, const at::Tensor& root) {
  const graph::ValueId value = capture.value_of(*TraceTensor::from(root));
  const std::optional<Origin> origin = origin_of(root);
  if (capture.counters.notes == nullptr || !origin || root.is_conj() || root.is_neg()) return value;
  const std::optional<graph::ValueId> first = capture.counters.notes->value(*origin);
  return first && capture.graph().type(*first).sizes == capture.graph().type(value).sizes ? *first : value;
}

struct GradientRecorder::BackwardSubgraph {
  struct Live {
    uint32_t storage, counter;  // how far the version counter of the caller's tensor was
    graph::ValueId value;
    bool all_unseen = false;
  };
  Capture& capture;
  GradientRecorder& recorder;
  const std::vector<at::Tensor>& roots;
  std::vector<uint32_t> written{};  // storages whose contents are read at the start of the backward pass
  std::vector<Live> live{};
  std::vector<graph::ValueId> root_values{};
  std::vector<std::pair<Edge, graph::ValueId>> base_values{};  // of the tensors of which roots are views
  const size_t storages = capture.storages().size();           // when the recording began

  // Returns a reason for failure; then nothing has changed. A failure may add to `written`, so a second attempt can
  // succeed.
  std::string attempt(Leaves& leaves, const std::vector<Node*>& python) {
    const size_t inputs = capture.graph().inputs.size(), symbols = capture.recorder().symbols().size();
    std::string why;
    recorder.backward_ = std::make_shared<Backward>();
    recorder.freed_graph_ = false;
    live.clear();
    Versions versions;
    for (const at::Tensor& t : capture.live().all()) versions.add(t);
    for (const Storage& storage : capture.storages())
      if (storage.real.defined()) versions.add(storage.real);
    root_values.clear();  // of the forward part
    for (const at::Tensor& root : roots) root_values.push_back(value_with_history(capture, root));
    note_bases();
    capture.subgraphs().begin_subgraph();
    const size_t depth = capture.subgraphs().depth();
    try {
      recorder.add_gradients(roots, leaves, python, *this);
    } catch (const c10::Error& e) {
      why = e.what_without_backtrace();
    } catch (const std::exception& e) {
      why = e.what();
    }
    if (why.empty()) return {};
    if (capture.subgraphs().depth() == depth) capture.subgraphs().abandon_subgraph();
    versions.restore();
    if (const BreakReason failure = capture.subgraphs().take_subgraph_failure(); !failure.empty()) why = failure.text();
    // torch raises this error when a saved tensor is unpacked, and has no type or flag for it.
    recorder.freed_graph_ = why.find(torch::autograd::ERR_BACKWARD_TWICE) != std::string::npos;
    capture.graph().inputs.resize(inputs);
    capture.recorder().symbols().resize(symbols);
    recorder.backward_ = nullptr;
    return why;
  }

  void note_bases() {
    base_values.clear();
    for (const at::Tensor& root : roots) {
      const at::Tensor base = root.is_view() ? at::Tensor(root._base()) : at::Tensor();
      if (base.defined() && is_own(base) && base.requires_grad() && &TraceTensor::from(base)->capture() == &capture)
        base_values.emplace_back(torch::autograd::impl::gradient_edge(base), value_with_history(capture, base));
    }
  }

  at::Tensor add_tangent(Backward& backward, const at::Tensor& root) {
    graph::TensorType type = TraceTensor::from(root)->type();
    // A gradient has an element for each element of the result, even if the result's elements share memory.
    type.strides = ops::ShapeContext(capture.graph(), "the gradient of a result").like_strides(type);
    backward.tangents.push_back(capture.graph().add_input(std::move(type), "gradient"));
    return capture.make_result(backward.tangents.back());
  }

  std::vector<Backward::Intermediate> intermediates(const torch::autograd::edge_list& sources) const {
    std::vector<Backward::Intermediate> found = intermediate_outputs(roots, sources);
    // The gradient seen by a waiting hook depends on all contributing roots, so outputs with hooks are excluded.
    std::erase_if(found, [&](const Backward::Intermediate& one) {
      Node& node = *torch::autograd::impl::gradient_edge(roots[one.root]).function;
      return !node.tensor_pre_hooks().empty() || !node.pre_hooks().empty();
    });
    return found;
  }

  void leave_out_unused(Backward& backward) {
    std::vector<sym::ExprId> numbers;
    for (const OutputSpec& spec : backward.gradients) {
      for (const auto* list : {&spec.sizes, &spec.strides}) numbers.insert(numbers.end(), list->begin(), list->end());
      if (spec.is_view) numbers.push_back(spec.offset);
    }
    drop_unused(capture.graph(), backward.part, capture.recorder().symbols(), numbers);
    const std::unordered_set<graph::ValueId> computed = computed_in(capture.graph(), backward.part);
    std::erase_if(backward.intermediates,
                  [&](const Backward::Intermediate& one) { return !computed.contains(one.gradient); });
  }

  void begin() {
    for (const uint32_t i : written) {
      Storage& storage = capture.storages()[i];
      graph::Graph& graph = capture.graph();
      const auto& given = storage.home == OutputSpec::Kind::Input ? graph.inputs : graph.constants;
      const graph::ValueId value = graph.add_input(graph.type(given[storage.position]), "at the backward pass");
      storage.value = value;
      ++storage.version;
      live.push_back({i, version_of(storage.real), value});
    }
  }

  Subgraph end() {
    for (Live& l : live) {
      const Storage& storage = capture.storages()[l.storage];
      l.all_unseen = version_of(storage.real) == l.counter;
    }
    return capture.subgraphs().end_subgraph({});
  }

  // Aborts if the subgraph writes a storage outside of `written`. Adds the storage to `written` if this is permitted.
  void check_writes(const Backward& backward) {
    const size_t known = written.size();
    bool all_known = true;
    for (const auto& [i, value] : backward.part.writes) {
      if (std::find(written.begin(), written.end(), i) != written.end()) continue;
      all_known = false;
      const Storage& storage = capture.storages()[i];
      // With several results, a pass may use some results and skip the write.
      const bool possible = known == 0 && roots.size() == 1 && backward.part.calls.empty() && !storage.required_grad &&
                            !storage.ambiguous && storage.real.defined() && i < storages &&
                            storage.home != OutputSpec::Kind::GraphOutput;
      if (!possible) {
        written.resize(known);
        break;
      }
      written.push_back(i);
    }
    if (!all_known) abort_capture(BreakKind::SideEffect, "computing them writes a tensor");
  }

  // A gradient which is a tangent becomes an input; any other value from outside the subgraph is copied.
  void own_gradients(Backward& backward, std::vector<graph::ValueId>& outputs) {
    const std::unordered_set<graph::ValueId> computed = computed_in(capture.graph(), backward.part);
    for (OutputSpec& spec : backward.gradients) {
      if (spec.kind != OutputSpec::Kind::GraphOutput || computed.contains(outputs[spec.position])) continue;
      const auto tangent = std::find(backward.tangents.begin(), backward.tangents.end(), outputs[spec.position]);
      if (tangent != backward.tangents.end()) {
        spec.kind = OutputSpec::Kind::Input;
        spec.position = capture.graph().value(*tangent).result;
      } else {
        outputs[spec.position] = copied(backward, outputs[spec.position]);
      }
    }
  }

  // Makes written contents separate outputs of the subgraph.
  void add_writes(Backward& backward) {
    const std::unordered_set<graph::ValueId> computed = computed_in(capture.graph(), backward.part);
    for (const auto& [storage, found] : std::exchange(backward.part.writes, {})) {
      const auto before =
          std::find_if(live.begin(), live.end(), [&, s = storage](const Live& l) { return l.storage == s; });
      graph::ValueId value = found;
      if (value == before->value) continue;
      const std::vector<graph::ValueId>& outputs = backward.part.outputs;
      if (!computed.contains(value) || std::find(outputs.begin(), outputs.end(), value) != outputs.end())
        value = copied(backward, value);
      backward.part.outputs.push_back(value);
      const Storage& s = capture.storages()[storage];
      backward.writes.push_back({{s.home, s.position}, before->value, value, before->all_unseen});
    }
  }

 private:
  graph::ValueId copied(Backward& backward, graph::ValueId value) {
    static const graph::OpId clone = graph::op_id("aten::clone");
    return capture.subgraphs().append_to(backward.part, clone, {value, graph::None{}});
  }
};

void GradientRecorder::add_gradients(const std::vector<at::Tensor>& roots, Leaves& leaves,
                                     const std::vector<Node*>& python, BackwardSubgraph& part) {
  Backward& backward = *backward_;
  const auto first_of_backward = static_cast<uint32_t>(capture_.graph().node_count());
  AutogradRecord record;
  std::vector<at::Tensor> tangents;
  torch::autograd::edge_list sources;
  for (const at::Tensor& root : roots) tangents.push_back(part.add_tangent(backward, root));
  part.begin();
  Ends ends;
  for (const Leaves::Leaf& leaf : leaves.all) {
    if (!leaf.reached) continue;
    ends.add(leaf.edge, leaf.tensor);
    sources.push_back(leaf.edge);
  }
  backward.intermediates = part.intermediates(sources);
  for (const Backward::Intermediate& intermediates : backward.intermediates)
    sources.push_back(torch::autograd::impl::gradient_edge(roots[intermediates.root]));
  std::vector<at::Tensor> found;
  backward.regions_of_autocast = open_regions_of_autocast();
  const Unkept unkept(leaves.retained);
  const sym::VarId own_from = capture_.graph().pool().new_var();
  const auto run = [&] {
    const AboveAutograd recording;  // composite operators are decomposed there
    // Each operator's dtypes follow from its own forward operator. A backward pass called under autocast takes a
    // different way (DoubleBackward::casts_apart).
    const c10::impl::ExcludeDispatchKeyGuard no_casts(c10::autocast_dispatch_keyset);
    const SizeOblivious oblivious(
        own_from);  // a gradient has its tensor's sizes, even where a formula treats empty tensors specially
    torch::autograd::edge_list starts;
    for (const at::Tensor& root : roots) starts.push_back(torch::autograd::impl::gradient_edge(root));
    const FunctionNotes functions(capture_, python);
    const InThisThread in_this_thread;
    found = torch::autograd::Engine::get_default_engine().execute(starts, tangents, /*keep_graph=*/true,
                                                                  /*create_graph=*/false, /*accumulate_grad=*/false,
                                                                  sources);
    if (capture_.counters.notes == nullptr) {  // the call made all leaves
      record.complete = false;
      return;
    }
    record = capture_.counters.notes->record(capture_.graph(), first_of_backward);
    functions.add_to(record, *capture_.counters.notes, [&](const Edge& edge) -> std::optional<graph::ValueId> {
      if (const Leaves::Leaf* leaf = leaves.find(edge);
          leaf != nullptr && leaf->place.home != OutputSpec::Kind::GraphOutput)
        return (leaf->place.home == OutputSpec::Kind::Input ? capture_.graph().inputs
                                                            : capture_.graph().constants)[leaf->place.position];
      for (const auto& [of_base, value] : part.base_values)
        if (of_base == edge) return value;
      const auto root = std::find(starts.begin(), starts.end(), edge);
      return root != starts.end() ? std::optional(part.root_values[static_cast<size_t>(root - starts.begin())])
                                  : std::nullopt;
    });
  };
  capture_.client().run_record(python, run);
  if (!capture_.subgraphs().subgraph_failure().empty())
    abort_capture(capture_.subgraphs().subgraph_failure());  // the program has not used anything of it
  std::vector<Reached> reached;
  size_t next = 0;
  for (const Leaves::Leaf& leaf : leaves.all)
    if (leaf.reached && found.at(next++).defined()) reached.push_back({leaf.edge, leaf.place, found[next - 1]});
  for (Backward::Intermediate& intermediates : backward.intermediates) {
    TraceTensor* const arriving = TraceTensor::from(found.at(next++));
    if (arriving != nullptr) intermediates.gradient = capture_.value_of(*arriving);
  }
  const std::vector<at::Tensor> gradients = add_leaves(backward, record, roots, ends, std::move(reached));
  std::vector<graph::ValueId> outputs;
  backward.gradients = capture_.outputs_of_subgraph(gradients, outputs);
  backward.part = part.end();
  backward.linear = python.empty();
  backward.reentrant = capture_.counters.reentrant;
  record.roots = part.root_values;
  backward.record = std::make_shared<const AutogradRecord>(std::move(record));
  for (const DataDependentCall& call : backward.part.calls)
    if (is_control_flow(call)) abort_capture(BreakKind::ControlFlow, "they need control flow");
  part.check_writes(backward);
  part.own_gradients(backward, outputs);
  keep_outputs(backward, outputs);
  part.add_writes(backward);
  part.leave_out_unused(backward);
}

// Notes results without gradients in the memory of results with gradients.
void GradientRecorder::note_plain(const std::vector<at::Tensor>& wanted, const std::vector<at::Tensor>& results) {
  std::unordered_set<uint32_t> storages;
  for (const at::Tensor& t : wanted) storages.insert(TraceTensor::from(t)->storage_id().index);
  for (const at::Tensor& t : results)
    if (is_own(t) && !t.requires_grad() && storages.contains(TraceTensor::from(t)->storage_id().index) &&
        !capture_.storages().is_callers(*TraceTensor::from(t)))
      plain_.insert(t.unsafeGetTensorImpl());
}

static BreakReason gradients_are_wanted(const std::string& but) {
  return {BreakKind::RequiredGradients, "gradients are wanted, and " + but};
}

BreakReason GradientRecorder::record_gradients(const std::vector<at::Tensor>& results) {
  if (std::any_of(results.begin(), results.end(), has_tangent))
    return {BreakKind::AutogradFeature, "a result has a tangent"};
  const AboveAutograd recording;  // a question for the history of a view makes the view again
  const auto of_caller = [](const Storage& s) { return s.real.defined() && is_asked_for_history(s.real); };
  if (std::any_of(results.begin(), results.end(), is_asked_for_history) ||
      std::any_of(capture_.storages().begin(), capture_.storages().end(), of_caller))
    return gradients_are_wanted("autograd is about to say what has become of a tensor");
  Leaves leaves{{}, results};
  std::vector<at::Tensor> written;
  if (!find_written(written))
    return {BreakKind::AutogradFeature, "whether gradients are wanted of a tensor of the caller's is changed"};
  for (const Storage& storage : capture_.storages()) {
    if (storage.home == OutputSpec::Kind::GraphOutput || !storage.real.defined()) continue;
    const Edge before = storage.is_root && storage.history != nullptr ? storage.history->edge() : Edge();
    if (storage.required_grad) leaves.all.push_back({storage.real, before, {storage.home, storage.position}, false});
    if (storage.is_root && storage.history != nullptr && storage.history->is_retained())
      leaves.retained.insert(storage.real.grad_fn().get());
  }
  std::string why = obstacle_to_histories(results);
  if (!why.empty()) return gradients_are_wanted(why);
  note_views(results);
  std::vector<at::Tensor> roots = differentiable(results, why);
  const size_t own = roots.size();
  roots.insert(roots.end(), written.begin(), written.end());
  const auto because = [&](const std::string& reason) {
    own_leaves_.clear();
    plain_.clear();
    return gradients_are_wanted(reason);
  };
  if (!why.empty()) return because(why);
  for (size_t i = 0; i < own_leaves_.size(); ++i) {
    const Edge edge = torch::autograd::impl::gradient_edge(own_leaves_[i]);
    if (!edge.is_valid()) continue;  // a view made in no_grad mode
    if (has_hooks(*edge.function)) return because("a result is a leaf that the call made, with hooks");
    leaves.all.push_back({own_leaves_[i], {}, {OutputSpec::Kind::GraphOutput, static_cast<uint32_t>(i)}, false});
  }
  note_plain(own_leaves_, results);
  if (roots.empty()) {
    settle_histories(results);
    return {};
  }
  try {
    for (Leaves::Leaf& leaf : leaves.all)
      if (!leaf.edge.is_valid()) leaf.edge = torch::autograd::impl::gradient_edge(leaf.tensor);
  } catch (const c10::Error&) {  // of a view whose base was written: eager mode raises where somebody asks
    return gradients_are_wanted("autograd refuses to say what has become of a view");
  }
  // A view made in no_grad mode counts as requiring gradients, although no gradient can flow from it.
  std::erase_if(leaves.all, [](const Leaves::Leaf& leaf) { return !leaf.edge.is_valid(); });
  std::vector<Node*> python;
  if (why = obstacle_to_gradients(roots, leaves, python); !why.empty()) return because(why);

  BackwardSubgraph part{capture_, *this, roots};
  why = part.attempt(leaves, python);
  if (!why.empty() && !part.written.empty()) why = part.attempt(leaves, python);
  if (!why.empty()) return because("computing them cannot be captured: " + why);
  note_plain(roots, results);
  std::unordered_set<uint32_t> storages;
  for (size_t i = 0; i < own; ++i) storages.insert(TraceTensor::from(roots[i])->storage_id().index);
  for (const std::vector<at::Tensor>* list : {&std::as_const(roots), &results})
    for (const at::Tensor& t : *list)
      if (const TraceTensor* trace = TraceTensor::from(t);
          trace != nullptr && trace == t.unsafeGetTensorImpl() && storages.contains(trace->storage_id().index)) {
        if (is_unrecorded_view(t))
          of_written_[t.unsafeGetTensorImpl()] = {.detached = false, .unrecorded = true};
        else if (t.requires_grad())
          of_written_.try_emplace(t.unsafeGetTensorImpl(), OfWritten{.detached = false, .unrecorded = false});
        t.unsafeGetTensorImpl()->set_autograd_meta(nullptr);
      }
  for (const at::Tensor& root : roots) roots_.push_back(TraceTensor::from(root)->storage_id());
  settle_histories(results);
  return {};
}

std::shared_ptr<const Backward> GradientRecorder::finished_backward(const std::vector<at::Tensor>& outputs) {
  if (backward_ == nullptr) return nullptr;
  for (const StorageId root : std::exchange(roots_, {})) {
    if (const Storage& storage = capture_.storages()[root.index]; storage.home != OutputSpec::Kind::GraphOutput) {
      backward_->roots.push_back({storage.home, storage.position});
      continue;
    }
    const auto found = std::find_if(outputs.begin(), outputs.end(), [&](const at::Tensor& t) {
      const TraceTensor* trace = TraceTensor::from(t);
      return trace != nullptr && trace->storage_id() == root;
    });
    backward_->roots.push_back({OutputSpec::Kind::GraphOutput, static_cast<uint32_t>(found - outputs.begin())});
  }
  for (Backward::Place& leaf : backward_->leaves) {
    if (leaf.home != OutputSpec::Kind::GraphOutput) continue;
    const at::Tensor& own = own_leaves_[leaf.position];
    const auto found =
        std::find_if(outputs.begin(), outputs.end(), [&](const at::Tensor& t) { return t.is_same(own); });
    leaf.position = static_cast<uint32_t>(found - outputs.begin());
  }
  return std::exchange(backward_, nullptr);
}

}  // namespace cresset::bridge
