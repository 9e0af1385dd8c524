// The autograd nodes of a compiled call.
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <list>
#include <numeric>

#include "bridge/aten/autograd_history.h"
#include "bridge/autograd/escaped_gradients.h"
#include "bridge/autograd/gradients.h"

namespace cresset::bridge {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

// Whether a compiled program can take the tangent. Batched tangents, tangents of torch.func's levels and tangents of
// subclasses are not plain.
bool is_plain(const at::Tensor& tangent, const TangentLayout& layout) {
  using c10::DispatchKey;
  constexpr c10::DispatchKeySet kWrappers({DispatchKey::Batched, DispatchKey::FuncTorchBatched,
                                           DispatchKey::FuncTorchGradWrapper, DispatchKey::Functionalize,
                                           DispatchKey::NestedTensor});
  const c10::DispatchKeySet keys = tangent.key_set();
  return keys.has(layout.device.is_cpu() ? DispatchKey::CPU : DispatchKey::CUDA) && !keys.has_any(kWrappers) &&
         !tangent.unsafeGetTensorImpl()->is_python_dispatch();
}

// Converts gradients of results to the layouts of the backward program.
at::Tensor laid_out(const at::Tensor& tangent, const TangentLayout& layout) {
  const auto make = [&] {
    const auto options = at::dtype(layout.dtype).device(layout.device);
    if (is_plain(tangent, layout)) return at::empty_strided(layout.sizes, layout.strides, options);
    // Of a batch, with an element for each of its tensors.
    return tangent.new_empty_strided(layout.sizes, layout.strides, options);
  };
  if (!tangent.defined()) return {};
  bool as_promised = tangent.scalar_type() == layout.dtype && !tangent.is_conj() && !tangent.is_neg() &&
                     !tangent._is_zerotensor() && tangent.layout() == c10::kStrided;
  if (tangent.layout() != c10::kStrided) return laid_out(tangent.to_dense(), layout);
  for (size_t d = 0; d < layout.sizes.size(); ++d)
    as_promised &= layout.sizes[d] == 1 || tangent.stride(static_cast<int64_t>(d)) == layout.strides[d];
  return as_promised || tangent.numel() == 0 ? tangent : make().copy_(tangent);
}

std::vector<at::Tensor> laid_out(const std::vector<at::Tensor>& tangents, const std::vector<TangentLayout>& layouts) {
  std::vector<at::Tensor> out;
  for (size_t i = 0; i < layouts.size(); ++i) out.push_back(laid_out(tangents[i], layouts[i]));
  return out;
}

bool are_plain(const std::vector<at::Tensor>& tangents, const std::vector<TangentLayout>& layouts) {
  for (size_t i = 0; i < layouts.size(); ++i)
    if (tangents[i].defined() && tangents[i].layout() == c10::kStrided && !is_plain(tangents[i], layouts[i]))
      return false;
  return true;
}

bool any_defined(const std::vector<at::Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& t) { return t.defined(); });
}

void begin_pass() {
  if (Capture* capture = Capture::current(); capture != nullptr && !capture->closed())
    capture->flush({BreakKind::AutogradFeature, "gradients of an earlier compiled call"});
}

bool is_from(const Backward::Intermediate& intermediates, size_t root) {
  return std::find(intermediates.from.begin(), intermediates.from.end(), root) != intermediates.from.end();
}

struct Runs : BackwardRuns {
  bool reentrant = false;  // Backward::reentrant
  bool gone() const { return compiled == nullptr; }
  void release() { compiled = recorded = arriving = nullptr; }
  // plain: whether all tangents are plain.
  BackwardRun& chosen(bool plain) {
    TORCH_CHECK(!reentrant || torch::autograd::Engine::get_default_engine().is_checkpoint_valid(),
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument.");
    if (!c10::GradMode::is_enabled() && (plain || takes_any))
      return recorded != nullptr && casts_apart != nullptr && casts_apart() ? recorded : compiled;
    TORCH_CHECK(
        plain || recorded != nullptr,
        "cresset: the gradient of this compiled call's result must be a plain tensor: its sizes depend on data, "
        "or an error interrupted its capture. Call the function without cresset.compile.");
    TORCH_CHECK(
        recorded != nullptr,
        "cresset: gradients of gradients (create_graph=True) cannot pass through this compiled call: its sizes "
        "depend on data, or an error interrupted its capture. Compute the inner gradient inside of the compiled "
        "function (torch.autograd.grad in it is compiled), or call the function without cresset.compile.");
    return recorded;
  }
};

// The single node of a call in which every result leads to every leaf, through the same nodes with saved tensors.
// Without nodes of this kind, passes can be repeated.
class CompiledBackward final : public Node {
 public:
  CompiledBackward(torch::autograd::edge_list&& edges, std::vector<TangentLayout> layouts, bool again,
                   SavedTensors saved, Runs runs)
      : Node(std::move(edges)),
        layouts_(std::move(layouts)),
        again_(again),
        saved_(std::move(saved)),
        runs_(std::move(runs)) {}

  std::string name() const override { return "CompiledBackward"; }
  void release_variables() override {
    if (again_) return;
    const std::lock_guard lock(mutex_);
    runs_.release();
    saved_ = {};
  }

 protected:
  variable_list apply(variable_list&& tangents) override {
    begin_pass();
    if (!any_defined(tangents)) return variable_list(num_outputs());
    const bool plain = are_plain(tangents, layouts_);
    std::vector<at::Tensor> given = laid_out(tangents, layouts_);
    tangents.clear();
    auto [run, saved] = take(plain);
    return run(std::move(given), std::move(saved));
  }

 private:
  // The program and saved tensors of a pass. Only the last pass owns them exclusively, so it can release them step by
  // step.
  std::pair<BackwardRun, std::vector<at::Tensor>> take(bool plain) {
    const bool again = again_ || torch::autograd::get_current_graph_task_keep_graph();
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(!runs_.gone(), torch::autograd::ERR_BACKWARD_TWICE);
    saved_.check();
    BackwardRun& chosen = runs_.chosen(plain);
    if (again) return {chosen, saved_.tensors};
    BackwardRun run = std::move(chosen);
    runs_.release();
    return {std::move(run), std::exchange(saved_, {}).tensors};
  }

  std::mutex mutex_;
  const std::vector<TangentLayout> layouts_;
  const bool again_;
  SavedTensors saved_;
  Runs runs_;
};

// The nodes of any other call. Each root has a node which only takes the tangent. Its edges lead to the nodes of the
// leaf groups reachable from the root. Autograd thus takes the same paths as in eager mode, and a leaf reached by no
// tangent gets no gradient.
//
// The first group node of a pass computes the gradients of all groups which the pass requests. The group nodes are
// older than any consumer of the results, and autograd runs the newest nodes first. Therefore all tangents have arrived
// by then. A late tangent (from another device's thread) is computed separately, and the sums are still right.
//
// An intermediate output (`Backward::Intermediate`) has an edge from each root computed from it. The gradient on this
// edge is already part of the leaves' gradients, so it normally stays undefined. It is computed when the pass requests
// it or the output has hooks. The output's own node then subtracts it from the arriving gradient; changes made by hooks
// remain.
class JointBackward {
 public:
  JointBackward(std::vector<TangentLayout> layouts, const Backward& backward,
                std::vector<Backward::Intermediate> intermediates, size_t leaves, SavedTensors saved,
                std::shared_ptr<const SavedUse> use, Runs runs)
      : intermediates(std::move(intermediates)),
        linear_(backward.linear),
        leaves_(leaves),
        layouts_(std::move(layouts)),
        groups_(backward.groups),
        holders_(backward.holders),
        spent_by_(holders_.size(), kNoPass),
        use_(std::move(use)),
        released_(groups_.size()),
        saved_(std::move(saved)),
        runs_(std::move(runs)) {}

  // Only looked up among the nodes of a pass, never dereferenced.
  std::vector<Node*> root_nodes, leaf_nodes;
  const std::vector<Backward::Intermediate> intermediates;

  // The root's tangent in this pass, without the gradients given on by the roots computed from it.
  at::Tensor own_part(size_t root, at::Tensor tangent) {
    if (intermediates.empty()) return tangent;
    const at::Tensor given = std::exchange(current_pass().given_on[root], {});
    drop_idle_pass();
    if (!given.defined() || tangent.is_same(given)) return given.defined() ? at::Tensor() : tangent;
    const at::Tensor rest = tangent.defined() ? tangent - given : -given;
    return at::where(given.isfinite(), rest, at::zeros_like(rest));
  }

  // The parts of this root's tangent which arrive at the intermediate outputs with a request, in their order.
  std::vector<at::Tensor> give_on(size_t root, const at::Tensor& tangent) {
    std::vector<at::Tensor> out(intermediates.size()), arriving;
    const bool adds_up = linear_ || std::none_of(intermediates.begin(), intermediates.end(),
                                                 [](const Backward::Intermediate& p) { return p.from.size() > 1; });
    for (size_t i = 0; tangent.defined() && i < intermediates.size(); ++i) {
      const uint32_t to = intermediates[i].root;
      if (!is_from(intermediates[i], root) || !asks(root_nodes[to])) continue;
      if (arriving.empty()) arriving = adds_up ? arriving_from(root, tangent) : added_by(root, tangent);
      out[i] = arriving.at(i);
      if (!runs(root_nodes[to])) continue;
      at::Tensor& sum = current_pass().given_on[to];
      sum = sum.defined() ? sum + out[i] : out[i];
    }
    return out;
  }

  void take_tangent(size_t root, at::Tensor tangent) {
    // The pass is for an intermediate output.
    if (std::none_of(leaf_nodes.begin(), leaf_nodes.end(), takes_part)) return;
    Pass& pass = current_pass();
    pass.arrived[root] = true;
    pass.is_new |= tangent.defined();
    pass.tangents[root] = std::move(tangent);
  }

  variable_list gradients_of(size_t group) {
    Pass& pass = current_pass();
    if (std::exchange(pass.is_new, false)) compute(pass);
    variable_list out;
    for (const uint32_t leaf : groups_[group].leaves) out.push_back(std::exchange(pass.gradients[leaf], {}));
    pass.done[group] = true;
    for (size_t g = 0; g < groups_.size(); ++g)
      if (!pass.done[g] && takes_part(leaf_nodes[g])) return out;
    const std::lock_guard lock(mutex_);
    passes_.remove_if([&](const Pass& p) { return &p == &pass; });
    return out;
  }

  // Called when no pass can request the gradients of this group any more.
  void release(size_t group) {
    const std::lock_guard lock(mutex_);
    released_[group] = true;
    if (std::find(released_.begin(), released_.end(), false) != released_.end()) return;
    runs_.release();
    saved_ = {};
  }

 private:
  struct Pass {
    int id;
    std::vector<at::Tensor> tangents;  // tangents which are not yet processed
    std::vector<bool> arrived, done;   // by root; by group
    std::vector<at::Tensor> given_on;  // by root: gradient given on by the roots computed from it
    std::vector<at::Tensor> given_by;  // by root: the tangent whose gradients were given on,
    std::vector<at::Tensor> arriving;  // and by intermediate output: the total given on
    std::vector<at::Tensor> gradients;
    bool is_new = false;
  };

  Pass& current_pass() {
    const int id = torch::autograd::get_current_graph_task_id();
    const std::lock_guard lock(mutex_);
    for (Pass& pass : passes_)
      if (pass.id == id) return pass;
    Pass& pass = passes_.emplace_back();
    pass.id = id;
    pass.tangents.resize(layouts_.size());
    pass.arrived.resize(layouts_.size());
    pass.given_on.resize(layouts_.size());
    pass.given_by.resize(layouts_.size());
    pass.done.resize(groups_.size());
    pass.gradients.resize(leaves_);
    return pass;
  }

  // Drops the pass when no group node will end it.
  void drop_idle_pass() {
    if (std::any_of(leaf_nodes.begin(), leaf_nodes.end(), takes_part)) return;
    const int id = torch::autograd::get_current_graph_task_id();
    const std::lock_guard lock(mutex_);
    passes_.remove_if(
        [&](const Pass& pass) { return pass.id == id && !any_defined(pass.given_on) && !any_defined(pass.given_by); });
  }

  std::vector<at::Tensor> arriving_from(size_t root, const at::Tensor& tangent) {
    std::vector<at::Tensor> tangents(layouts_.size());
    tangents[root] = laid_out(tangent, layouts_[root]);
    return arriving_from(std::move(tangents));
  }

  // The part which this root adds to the earlier roots' total. A Python function need not be linear, so totals are
  // subtracted.
  std::vector<at::Tensor> added_by(size_t root, const at::Tensor& tangent) {
    Pass& pass = current_pass();
    pass.given_by[root] = laid_out(tangent, layouts_[root]);
    const std::vector<at::Tensor> before = std::exchange(pass.arriving, arriving_from(pass.given_by));
    std::vector<at::Tensor> out = pass.arriving;
    for (size_t i = 0; i < before.size(); ++i) out[i] = out[i] - before[i];
    const bool last = [&] {
      for (size_t i = 0; i < root_nodes.size(); ++i)
        if (!pass.given_by[i].defined() && runs(root_nodes[i])) return false;
      return true;
    }();
    if (!last) return out;
    pass.given_by.assign(layouts_.size(), {});
    pass.arriving.clear();
    drop_idle_pass();
    return out;
  }

  std::vector<at::Tensor> arriving_from(std::vector<at::Tensor> tangents) {
    BackwardRun run;
    std::vector<at::Tensor> saved;
    {
      const std::lock_guard lock(mutex_);
      TORCH_CHECK(!runs_.gone(), torch::autograd::ERR_BACKWARD_TWICE);
      saved_.check();
      run = runs_.arriving;
      saved = saved_.tensors;
    }
    return run(std::move(tangents), std::move(saved));
  }

  // Whether the node's gradient is observed: the pass captures it, or hooks see it.
  static bool asks(Node* node) {
    const auto& chosen = *torch::autograd::get_current_graph_task_exec_info();
    const auto found = chosen.find(node);
    const bool has_hooks = !node->tensor_pre_hooks().empty() || !node->retains_grad_hooks().empty() ||
                           !node->pre_hooks().empty() || !node->post_hooks().empty();
    return (found != chosen.end() && found->second.captures_ != nullptr) || (has_hooks && takes_part(node));
  }

  // Whether the pass runs the node, rather than only capturing its gradient.
  static bool runs(Node* node) {
    const auto& chosen = *torch::autograd::get_current_graph_task_exec_info();
    const auto found = chosen.find(node);
    return chosen.empty() || (found != chosen.end() && found->second.needed_);
  }

  // Whether the current pass runs the node or captures its gradient.
  static bool takes_part(Node* node) {
    if (!torch::autograd::get_current_graph_task_nodes_in_graph()->contains(node)) return false;
    const auto& chosen = *torch::autograd::get_current_graph_task_exec_info();
    const auto found = chosen.find(node);
    return chosen.empty() || (found != chosen.end() && found->second.should_execute());
  }

  void compute(Pass& pass) {
    std::vector<bool> wanted;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const std::vector<uint32_t>& roots = groups_[g].roots;
      const bool reached =
          std::any_of(roots.begin(), roots.end(), [&](uint32_t root) { return pass.tangents[root].defined(); });
      wanted.push_back(reached && !pass.done[g] && takes_part(leaf_nodes[g]));
    }
    spend(pass, wanted);
    const std::vector<bool> read = what_is_read(pass, wanted);
    const bool plain = are_plain(pass.tangents, layouts_);
    std::vector<at::Tensor> given = laid_out(pass.tangents, layouts_);
    for (at::Tensor& tangent : pass.tangents) tangent.reset();
    auto [run, saved] = take(is_last(pass, wanted), read, plain);
    std::vector<at::Tensor> found = run(std::move(given), std::move(saved));
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (!wanted[g]) continue;
      for (const uint32_t leaf : groups_[g].leaves) {
        at::Tensor& sum = pass.gradients[leaf];
        if (found[leaf].defined()) sum = sum.defined() ? sum + found[leaf] : std::move(found[leaf]);
      }
    }
  }

  // The saved tensors which are read between the defined tangents and the wanted leaves.
  std::vector<bool> what_is_read(const Pass& pass, const std::vector<bool>& wanted) const {
    std::vector<bool> read;
    for (size_t g = 0; use_ != nullptr && use_->is_known() && g < groups_.size(); ++g)
      for (const uint32_t root : groups_[g].roots) {
        if (!wanted[g] || !pass.tangents[root].defined()) continue;
        const std::vector<bool>& here = use_->of(root, g);
        read.resize(here.size());
        for (size_t i = 0; i < here.size(); ++i)
          if (here[i]) read[i] = true;
      }
    return read;
  }

  // The nodes on the way of a pass release their saved tensors, as in eager mode, so no later pass can take the same
  // way.
  void spend(const Pass& pass, const std::vector<bool>& wanted) {
    const bool keep = torch::autograd::get_current_graph_task_keep_graph();
    const std::lock_guard lock(mutex_);
    for (size_t h = 0; h < holders_.size(); ++h) {
      bool from = false, to = false;
      for (size_t r = 0; r < layouts_.size(); ++r) from |= holders_[h].roots[r] && pass.tangents[r].defined();
      for (size_t g = 0; g < groups_.size(); ++g) to |= holders_[h].groups[g] && wanted[g];
      if (!from || !to) continue;
      TORCH_CHECK(spent_by_[h] == kNoPass || spent_by_[h] == pass.id, torch::autograd::ERR_BACKWARD_TWICE);
      if (!keep) spent_by_[h] = pass.id;
    }
  }

  bool is_spent(size_t root, size_t group) const {
    for (size_t h = 0; h < holders_.size(); ++h)
      if (spent_by_[h] != kNoPass && holders_[h].roots[root] && holders_[h].groups[group]) return true;
    return false;
  }

  // Whether no later pass is possible. If so, this run owns the saved tensors exclusively and releases them step by
  // step.
  bool is_last(const Pass& pass, const std::vector<bool>& wanted) {
    if (torch::autograd::get_current_graph_task_keep_graph()) return false;
    for (size_t i = 0; i < root_nodes.size(); ++i)
      if (!pass.arrived[i] && takes_part(root_nodes[i])) return false;
    const std::lock_guard lock(mutex_);
    for (size_t g = 0; g < groups_.size(); ++g)
      for (const uint32_t root : groups_[g].roots)
        if ((wanted[g] || !released_[g]) && !is_spent(root, g)) return false;
    return true;
  }

  std::pair<BackwardRun, std::vector<at::Tensor>> take(bool last, const std::vector<bool>& read, bool plain) {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(!runs_.gone(), torch::autograd::ERR_BACKWARD_TWICE);
    saved_.check(read);
    BackwardRun& chosen = runs_.chosen(plain);
    if (!last) return {chosen, saved_.tensors};
    BackwardRun run = std::move(chosen);
    runs_.release();
    return {std::move(run), std::exchange(saved_, {}).tensors};
  }

  std::mutex mutex_;
  const bool linear_;
  const size_t leaves_;
  const std::vector<TangentLayout> layouts_;
  const std::vector<Backward::Group> groups_;
  const std::vector<Backward::Holder> holders_;
  static constexpr int kNoPass = -1;
  std::vector<int> spent_by_;                  // by holder: the pass which used it
  const std::shared_ptr<const SavedUse> use_;  // nullptr: not known
  std::vector<bool> released_;
  std::list<Pass> passes_;  // an entry belongs to a single pass
  SavedTensors saved_;
  Runs runs_;
};

// The node of a group of leaves.
class GroupBackward final : public Node {
 public:
  GroupBackward(torch::autograd::edge_list&& edges, std::shared_ptr<JointBackward> joint, size_t group)
      : Node(std::move(edges)), joint_(std::move(joint)), group_(group) {}
  ~GroupBackward() override { joint_->release(group_); }
  std::string name() const override { return "CompiledGradients"; }

 protected:
  variable_list apply(variable_list&&) override {
    begin_pass();
    return joint_->gradients_of(group_);
  }

 private:
  const std::shared_ptr<JointBackward> joint_;
  const size_t group_;
};

// edges: first to the groups, then to intermediate outputs.
class RootBackward final : public Node {
 public:
  RootBackward(torch::autograd::edge_list&& edges, std::shared_ptr<JointBackward> joint, size_t root, size_t groups)
      : Node(std::move(edges)), joint_(std::move(joint)), root_(root), groups_(groups) {}
  std::string name() const override { return "CompiledBackward"; }

 protected:
  variable_list apply(variable_list&& tangents) override {
    begin_pass();
    at::Tensor tangent = joint_->own_part(root_, std::move(tangents.at(0)));
    variable_list out(num_outputs());
    const std::vector<at::Tensor> given = joint_->give_on(root_, tangent);
    for (size_t i = 0, edge = groups_; i < joint_->intermediates.size(); ++i)
      if (is_from(joint_->intermediates[i], root_)) out.at(edge++) = given[i];
    joint_->take_tangent(root_, std::move(tangent));
    return out;
  }

 private:
  const std::shared_ptr<JointBackward> joint_;
  const size_t root_, groups_;
};

}  // namespace

at::Tensor zeros(const TangentLayout& layout) {
  return at::empty_strided(layout.sizes, layout.strides, at::dtype(layout.dtype).device(layout.device)).zero_();
}

void fill_with_zeros(std::vector<at::Tensor>& tangents, const std::vector<TangentLayout>& layouts) {
  for (size_t i = 0; i < tangents.size(); ++i)
    if (!tangents[i].defined()) tangents[i] = zeros(layouts[i]);
}

bool is_compiled(const Node& node) {
  return dynamic_cast<const CompiledBackward*>(&node) != nullptr ||
         dynamic_cast<const GroupBackward*>(&node) != nullptr || dynamic_cast<const RootBackward*>(&node) != nullptr;
}

void SavedTensors::add(const at::Tensor& t) {
  // An alias with the same memory and version counter, but without history: it must not refer back to the node.
  // detach() is unsuitable: a segment may end inside of an operator, where detach() does not share the counter.
  const c10::TensorImpl* impl = t.unsafeGetTensorImpl();
  tensors.push_back(t.is_inference()
                        ? t.detach()
                        : at::Tensor(impl->shallow_copy_and_detach(impl->version_counter(),
                                                                   /*allow_tensor_metadata_change=*/false)));
  versions_.push_back(version_of(tensors.back()));
}

void SavedTensors::check(const std::vector<bool>& read) const {
  for (size_t i = 0; i < tensors.size(); ++i)
    TORCH_CHECK((!read.empty() && !read[i]) || version_of(tensors[i]) == versions_[i],
                "one of the variables needed for gradient computation has been modified by an inplace operation: [",
                tensors[i].toString(), " ", tensors[i].sizes(), "] is at version ", version_of(tensors[i]),
                "; expected version ", versions_[i],
                " instead. Hint: the operation that failed to compute its gradient is part of a compiled function; "
                "call it without cresset under torch.autograd.set_detect_anomaly(True) to find it.");
}

namespace {

void set_root(const at::Tensor& root, const NodePtr& node, bool is_written) {
  if (is_written)
    rebase(root, node, node->add_input_metadata(root));
  else
    torch::autograd::set_history(root, node);
}

// Orders roots so that a node exists before the nodes with edges to it. If a root is computed from another root, fewer
// roots are computed from the former.
std::vector<size_t> intermediates_first(const std::vector<Backward::Intermediate>& intermediates, size_t count) {
  std::vector<size_t> order(count), by(count);
  for (const Backward::Intermediate& p : intermediates) by[p.root] = p.from.size();
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return by[a] > by[b]; });
  return order;
}

}  // namespace

void set_gradients(const std::vector<at::Tensor>& roots, size_t fresh, const std::vector<at::Tensor>& leaves,
                   const Backward& backward, std::vector<TangentLayout> layouts, SavedTensors saved,
                   std::shared_ptr<const SavedUse> use, BackwardRuns given) {
  using torch::autograd::edge_list;
  const std::vector<Backward::Group>& groups = backward.groups;
  edge_list edges;
  for (const at::Tensor& leaf : leaves) edges.push_back(torch::autograd::impl::gradient_edge(leaf));
  std::vector<Backward::Intermediate> intermediates =
      given.arriving != nullptr ? backward.intermediates : std::vector<Backward::Intermediate>();
  for (Backward::Intermediate& p : intermediates)
    if (p.root >= fresh) p.from.clear();  // autograd itself makes the history of a written tensor
  Runs runs{std::move(given), backward.reentrant};
  if (groups.empty()) {
    const NodePtr node = make_node<CompiledBackward>(std::move(edges), std::move(layouts), backward.holders.empty(),
                                                     std::move(saved), std::move(runs));
    for (size_t i = 0; i < roots.size(); ++i) set_root(roots[i], node, i >= fresh);
    return;
  }
  const auto joint = std::make_shared<JointBackward>(std::move(layouts), backward, std::move(intermediates),
                                                     leaves.size(), std::move(saved), std::move(use), std::move(runs));
  std::vector<edge_list> of_roots(roots.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    edge_list of_group;
    for (const uint32_t leaf : groups[g].leaves) of_group.push_back(edges[leaf]);
    const NodePtr node = make_node<GroupBackward>(std::move(of_group), joint, g);
    node->add_input_metadata(roots[groups[g].roots.front()]);  // a thread of its device runs the node
    joint->leaf_nodes.push_back(&*node);
    for (const uint32_t root : groups[g].roots) of_roots[root].emplace_back(node, 0);
  }
  joint->root_nodes.resize(roots.size());
  for (const size_t i : intermediates_first(joint->intermediates, roots.size())) {
    const size_t to_groups = of_roots[i].size();
    for (const Backward::Intermediate& p : joint->intermediates)
      if (is_from(p, i)) of_roots[i].push_back(torch::autograd::impl::gradient_edge(roots[p.root]));
    const NodePtr node = make_node<RootBackward>(std::move(of_roots[i]), joint, i, to_groups);
    joint->root_nodes[i] = &*node;
    set_root(roots[i], node, i >= fresh);
  }
}

}  // namespace cresset::bridge
