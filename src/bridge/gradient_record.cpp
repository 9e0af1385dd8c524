// The backward part of a capture: autograd's record, run once on trace tensors.
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_set>

#include "bridge/control_flow.h"
#include "bridge/gradients.h"
#include "bridge/stages.h"

namespace cresset::bridge {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;

// By name: libtorch_python does not export the classes.
template <class T>
bool is_class(const T& object, std::string_view mangled) {
  return std::string_view(typeid(object).name()).find(mangled) != std::string_view::npos;
}

// Of the hooks at a node, which are functions of Python's.
struct Hooks {
  explicit Hooks(Node& node) {
    others = !node.retains_grad_hooks().empty();
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

// While autograd's record is run for the capture: nodes of the caller's, at which the record begins, only take what
// they are given. No hook sees it, nothing behind them runs, and it has the sizes of the stand-in.
class Ends {
 public:
  void add(const Edge& edge, const at::Tensor& leaf) {
    const at::Tensor real = Guest::alias_of(leaf);
    shapes_.push_back({edge, (real.defined() ? real : leaf).sizes().vec()});
    set_shape(edge, leaf.sym_sizes());
    for (const Kept& kept : kept_)
      if (kept.node == edge.function.get()) return;
    Kept& kept = kept_.emplace_back();
    kept.node = edge.function.get();
    kept.next.swap(kept.node->next_edges());
    kept.pre.swap(kept.node->tensor_pre_hooks());
    kept.retains.swap(kept.node->retains_grad_hooks());
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
};

}  // namespace

const void* gradient_node(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  return meta != nullptr ? meta->grad_fn_.get() : nullptr;
}

// Tensors of the caller's, and where autograd's record of them begins.
struct Capture::Leaves {
  struct Leaf {
    at::Tensor tensor;
    Edge edge;
    Backward::Leaf place;
    bool reached = false;
  };
  std::vector<Leaf> all;

  Leaf* find(const Edge& edge) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Leaf& l) { return l.edge == edge; });
    return found != all.end() ? &*found : nullptr;
  }
};

namespace {

// The tensor of which all others are views, for autograd as well; undefined when they only share memory.
at::Tensor common_base(const std::vector<at::Tensor>& sharing) {
  at::Tensor base = sharing[0];
  if (base.is_view()) base = base._base();
  const TraceTensor* trace = TraceTensor::from(base);
  if (trace == nullptr || trace != base.unsafeGetTensorImpl() || trace->chain() != nullptr) return {};
  for (const at::Tensor& t : sharing) {
    const bool belongs = t.is_same(base) || (t.is_view() && t._base().is_same(base));
    if (!belongs || !t.requires_grad() || t.scalar_type() != base.scalar_type()) return {};
  }
  return base;
}

}  // namespace

// The results that need a history of their own: of those that share memory, the one that the others are views of.
std::vector<at::Tensor> Capture::differentiable(const std::vector<at::Tensor>& results, std::string& why) {
  std::vector<at::Tensor> roots;
  std::unordered_map<uint32_t, std::vector<at::Tensor>> sharing;
  for (const at::Tensor& result : results)
    if (const TraceTensor* trace = TraceTensor::from(result)) sharing[trace->storage_id().index].push_back(result);
  std::unordered_set<uint32_t> done;
  for (const at::Tensor& result : results) {
    const TraceTensor* trace = TraceTensor::from(result);
    if (!result.requires_grad() || trace == nullptr || trace != result.unsafeGetTensorImpl()) continue;
    const uint32_t storage = trace->storage_id().index;
    if (is_callers(*trace)) {  // a view, of which autograd makes its own record at each call
      if (result.scalar_type() != storages_[storage].real.scalar_type()) why = "a result is a view as another dtype";
      const at::Tensor base =
          result.is_view() ? at::Tensor(result._base()) : result;  // x.detach().requires_grad_() is none of x's
      const bool own = TraceTensor::from(base) == base.unsafeGetTensorImpl();
      if (own && gradient_node(base) == nullptr) why = "a result is a leaf that the call made";
      continue;
    }
    if (result.is_conj() || result.is_neg()) why = "a result is conjugated or negated when it is read";
    at::Tensor root = result;
    if (sharing[storage].size() > 1) {
      if (!done.insert(storage).second) continue;
      root = common_base(sharing[storage]);
      if (!root.defined()) {
        why = "results share memory that autograd does not know to be one";
        continue;
      }
    }
    if (gradient_node(root) == nullptr) why = "a result is a leaf that the call made";
    roots.push_back(std::move(root));
  }
  return roots;
}

// Nodes that run functions of Python's are listed.
std::string Capture::obstacle_to_gradients(const std::vector<at::Tensor>& roots, Leaves& leaves,
                                           std::vector<Node*>& python) {
  std::unordered_set<const Node*> seen;
  std::vector<Node*> left;
  const auto add = [&](Node* node) {
    if (node != nullptr && seen.insert(node).second) left.push_back(node);
  };
  std::unordered_map<const Node*, std::vector<Leaves::Leaf*>> ends;
  for (Leaves::Leaf& leaf : leaves.all) ends[leaf.edge.function.get()].push_back(&leaf);
  for (const at::Tensor& root : roots) add(root.grad_fn().get());
  bool any = false;
  while (!left.empty()) {
    Node* node = left.back();
    left.pop_back();
    if (dynamic_cast<torch::autograd::AccumulateGrad*>(node) != nullptr) return "a leaf that the call made takes part";
    const bool is_python = is_class(*node, "8autograd6PyNode");
    if (is_python && !run_record) return "a function of Python's, " + node->name() + ", computes them";
    const Hooks hooks(*node);
    if (hooks.others || (hooks.python && !run_record)) return "a hook waits for one of them";
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

void Capture::add_gradients(const std::vector<at::Tensor>& roots, Leaves& leaves, const std::vector<Node*>& python) {
  Backward& backward = *backward_;
  std::vector<at::Tensor> tangents, sources;
  for (const at::Tensor& root : roots) {
    graph::TensorType type = TraceTensor::from(root)->type();
    // A gradient has an element for each of the result's, though those may lie in one place.
    type.strides = ops::ShapeContext(*graph_, "the gradient of a result").like_strides(type);
    backward.tangents.push_back(graph_->add_input(std::move(type), "gradient"));
    tangents.push_back(make_result(backward.tangents.back()));
  }
  Ends ends;
  for (const Leaves::Leaf& leaf : leaves.all) {
    if (!leaf.reached) continue;
    ends.add(leaf.edge, leaf.tensor);
    sources.push_back(leaf.tensor);
  }
  std::vector<at::Tensor> found;
  const auto run = [&] {
    found = torch::autograd::grad(roots, sources, tangents, /*retain_graph=*/true, /*create_graph=*/false,
                                  /*allow_unused=*/true);
  };
  run_record ? run_record(python, run) : run();
  if (!part_failure_.empty()) abort_capture(part_failure_);  // of which the program has made nothing
  std::vector<at::Tensor> gradients;
  size_t next = 0;
  for (const Leaves::Leaf& leaf : leaves.all) {
    if (!leaf.reached || !found.at(next++).defined()) continue;
    backward.leaves.push_back(leaf.place);
    gradients.push_back(found[next - 1]);
  }
  std::vector<graph::ValueId> outputs;
  backward.gradients = outputs_of_part(gradients, outputs);
  backward.part = end_part({});
  for (const DataDependentCall& call : backward.part.calls)
    if (is_control_flow(call)) abort_capture("they need control flow");
  if (!backward.part.writes.empty()) abort_capture("computing them writes a tensor");
  // What the part is given is no output of its own.
  std::unordered_set<graph::ValueId> computed;
  for (const graph::NodeId id : backward.part.order)
    for (const graph::ValueId v : graph_->node(id).results) computed.insert(v);
  static const graph::OpId clone = graph::op_id("aten::clone");
  for (OutputSpec& spec : backward.gradients) {
    if (spec.kind != OutputSpec::Kind::GraphOutput || computed.contains(outputs[spec.position])) continue;
    const auto tangent = std::find(backward.tangents.begin(), backward.tangents.end(), outputs[spec.position]);
    if (tangent != backward.tangents.end()) {
      spec.kind = OutputSpec::Kind::Input;
      spec.position = graph_->value(*tangent).result;
    } else {
      outputs[spec.position] = append_to(backward.part, clone, {outputs[spec.position], graph::None{}});
    }
  }
  // Positions among those that are left.
  std::unordered_map<uint32_t, uint32_t> kept;
  for (OutputSpec& spec : backward.gradients) {
    if (spec.kind != OutputSpec::Kind::GraphOutput) continue;
    const auto [at, fresh] = kept.try_emplace(spec.position, static_cast<uint32_t>(backward.part.outputs.size()));
    if (fresh) backward.part.outputs.push_back(outputs[spec.position]);
    spec.position = at->second;
  }
  std::vector<sym::ExprId> numbers;
  for (const OutputSpec& spec : backward.gradients) {
    for (const auto* list : {&spec.sizes, &spec.strides}) numbers.insert(numbers.end(), list->begin(), list->end());
    if (spec.is_view) numbers.push_back(spec.offset);
  }
  drop_unused(*graph_, backward.part, symbols_, numbers);
}

std::string Capture::record_gradients(const std::vector<at::Tensor>& results) {
  Leaves leaves;
  for (const Storage& storage : storages_) {
    if (storage.home == OutputSpec::Kind::GraphOutput || !storage.real.defined()) continue;
    if (storage.real.requires_grad() != storage.required_grad || gradient_node(storage.real) != storage.gradient_node)
      return "gradients are wanted of a tensor that the call writes in place, or whether they are is changed";
    if (storage.required_grad) leaves.all.push_back({storage.real, {}, {storage.home, storage.position}, false});
  }
  std::string why;
  const std::vector<at::Tensor> roots = differentiable(results, why);
  const auto because = [](const std::string& reason) { return "gradients are wanted, and " + reason; };
  if (!why.empty()) return because(why);
  if (roots.empty()) return {};
  for (Leaves::Leaf& leaf : leaves.all) leaf.edge = torch::autograd::impl::gradient_edge(leaf.tensor);
  std::vector<Node*> python;
  if (why = obstacle_to_gradients(roots, leaves, python); !why.empty()) return because(why);

  const size_t inputs = graph_->inputs.size(), symbols = symbols_.size();
  backward_ = std::make_shared<Backward>();
  begin_part();
  const size_t depth = recordings_.size();
  try {
    add_gradients(roots, leaves, python);
  } catch (const c10::Error& e) {
    why = e.what_without_backtrace();
  } catch (const std::exception& e) {
    why = e.what();
  }
  if (!why.empty()) {
    if (recordings_.size() == depth) abandon_part();
    if (std::string failure = take_part_failure(); !failure.empty()) why = failure;
    graph_->inputs.resize(inputs);
    symbols_.resize(symbols);
    backward_ = nullptr;
    return because("computing them cannot be captured: " + why);
  }
  std::unordered_set<uint32_t> storages;
  for (const at::Tensor& root : roots) storages.insert(TraceTensor::from(root)->storage_id().index);
  for (const auto* list : {&roots, &results})
    for (const at::Tensor& t : *list)
      if (const TraceTensor* trace = TraceTensor::from(t);
          trace != nullptr && trace == t.unsafeGetTensorImpl() && storages.contains(trace->storage_id().index))
        t.unsafeGetTensorImpl()->set_autograd_meta(nullptr);
  roots_ = roots;
  return {};
}

std::shared_ptr<const Backward> Capture::finished_backward(const std::vector<at::Tensor>& outputs) {
  if (backward_ == nullptr) return nullptr;
  const auto storage = [](const at::Tensor& t) {
    const TraceTensor* trace = TraceTensor::from(t);
    return trace != nullptr ? trace->storage_id() : StorageId{};
  };
  for (const at::Tensor& root : std::exchange(roots_, {})) {
    const auto found =
        std::find_if(outputs.begin(), outputs.end(), [&](const at::Tensor& t) { return storage(t) == storage(root); });
    backward_->roots.push_back(static_cast<uint32_t>(found - outputs.begin()));
  }
  return std::exchange(backward_, nullptr);
}

}  // namespace cresset::bridge
