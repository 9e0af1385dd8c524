// Greedy best-first merging. The hints of sizes rank candidates; building the merged kernel decides whether a merge is
// possible.
#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "fuse/align.h"
#include "fuse/cost_model.h"
#include "fuse/plan.h"
#include "ops/effects.h"

namespace cresset::fuse {
namespace {

constexpr BuildLimits kLimits{};
// Beyond this number of readers (a mask read by every layer), only neighbours are paired.
constexpr size_t kAllPairs = 8;
struct Candidate {
  int64_t saved;
  uint32_t a, b;  // a before b
  uint32_t version_a, version_b;
  bool operator<(const Candidate& other) const {  // best first; ties: earlier units first
    return std::tuple(saved, other.a, other.b) < std::tuple(other.saved, a, b);
  }
};

class Merger {
 public:
  Merger(const Build& build, std::vector<Unit>& units)
      : build_(build), graph_(build.graph), units_(units), version_(units.size(), 0), alive_(units.size(), true) {
    uint32_t calls = 0, last_effect = kNone;
    next_effect_.assign(units.size(), kNone);
    for (uint32_t u = 0; u < units.size(); ++u) {
      index(u);
      if (units[u].node.valid() && ops::has_effects(graph_.node(units[u].node))) {
        if (last_effect != kNone) next_effect_[last_effect] = u;
        last_effect = u;
      }
      calls += units[u].node.valid();
      span_.push_back({calls, calls});
    }
    set_order();
    for (ValueId v : graph_.outputs) kept_.insert(build.memory.find(v)->base);
    for (const graph::Mutation& m : graph_.mutations) kept_.insert(build.memory.find(m.value)->base);
  }

  void run() {
    for (uint32_t u = 0; u < units_.size(); ++u) propose(u, /*only_later=*/true);
    while (!queue_.empty()) {
      const Candidate c = queue_.top();
      queue_.pop();
      if (!alive_[c.a] || !alive_[c.b] || version_[c.a] != c.version_a || version_[c.b] != c.version_b) continue;
      if (try_merge(c.a, c.b)) propose(c.a, /*only_later=*/false);
    }
    std::vector<Unit> left;
    for (uint32_t u = 0; u < units_.size(); ++u)
      if (alive_[u]) left.push_back(std::move(units_[u]));
    units_ = std::move(left);
  }

 private:
  bool is_kernel(uint32_t u) const { return alive_[u] && !units_[u].node.valid(); }
  int64_t bytes(ValueId base) const {
    const TensorType& type = graph_.type(base);
    int64_t n = byte_size(type.dtype);
    for (ExprId size : type.sizes) n *= graph_.env().typical_or(size, 64);
    return n;
  }
  static bool contains(const std::vector<ValueId>& values, ValueId v) {
    return std::find(values.begin(), values.end(), v) != values.end();
  }

  void set_order() {
    for (uint32_t u = 0; u < units_.size(); ++u) {
      order_.push_back(u);
      place_.push_back(u);
      for (ValueId v : units_[u].reads)
        for (uint32_t writer : writers_[v]) CRESSET_CHECK(writer < u, "units come in the order of the graph");
    }
    seen_.assign(units_.size(), 0);
  }
  void index(uint32_t u) {
    for (ValueId v : units_[u].reads) readers_[v].push_back(u);
    for (ValueId v : units_[u].writes) writers_[v].push_back(u);
  }
  void unindex(uint32_t u) {
    for (ValueId v : units_[u].reads) std::erase(readers_[v], u);
    for (ValueId v : units_[u].writes) std::erase(writers_[v], u);
  }

  // Pairs u with units which read its outputs, write its inputs, or read its inputs.
  void propose(uint32_t u, bool only_later) {
    if (!is_kernel(u)) return;
    std::vector<uint32_t> near;
    for (ValueId v : units_[u].writes) add_neighbours(near, u, readers_[v]);
    for (ValueId v : units_[u].reads) add_neighbours(near, u, writers_[v]), add_neighbours(near, u, readers_[v]);
    for (ValueId v : units_[u].writes) add_neighbours(near, u, writers_[v]);
    std::sort(near.begin(), near.end());
    near.erase(std::unique(near.begin(), near.end()), near.end());
    for (uint32_t other : near) {
      if (other == u || !is_kernel(other) || (only_later && other < u)) continue;
      if (device(other) != device(u)) continue;
      const int64_t saved = saving(u, other);
      if (saved > 0)
        queue_.push({saved, std::min(u, other), std::max(u, other), version_[std::min(u, other)],
                     version_[std::max(u, other)]});
    }
  }
  static void add_neighbours(std::vector<uint32_t>& near, uint32_t u, const std::vector<uint32_t>& units) {
    if (units.size() <= kAllPairs) {
      near.insert(near.end(), units.begin(), units.end());
      return;
    }
    std::vector<uint32_t> sorted = units;
    std::sort(sorted.begin(), sorted.end());
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), u);
    for (auto it = at; it != sorted.end() && it - at < 3; ++it) near.push_back(*it);
    for (auto it = at; it != sorted.begin() && at - it < 2;) near.push_back(*--it);
  }

  // Returns the bytes of memory traffic avoided by merging.
  int64_t saving(uint32_t a, uint32_t b) const {
    int64_t flow = 0, shared = 0;
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
      for (ValueId v : units_[from].writes)
        if (contains(units_[to].reads, v)) flow += bytes(v) * (needed_beside(v, a, b) ? 1 : 2);
    for (ValueId v : units_[a].reads)
      if (contains(units_[b].reads, v)) shared += bytes(v);
    if (flow == 0 && (far_apart(a, b) || shared * model_of(a).sibling_share < std::min(traffic(a), traffic(b))))
      return 0;
    return flow + shared;
  }
  bool far_apart(uint32_t a, uint32_t b) const {
    return std::max(span_[a].last, span_[b].last) - std::min(span_[a].first, span_[b].first) >= model_of(a).far_apart;
  }
  int64_t traffic(uint32_t u) const {
    int64_t total = 0;
    for (ValueId v : units_[u].reads) total += bytes(v);
    for (ValueId v : units_[u].writes) total += bytes(v);
    return total;
  }
  // Whether a unit other than a and b needs v in memory.
  bool needed_beside(ValueId v, uint32_t a, uint32_t b) const {
    if (kept_.count(v) != 0) return true;
    const auto it = readers_.find(v);
    if (it == readers_.end()) return false;
    return std::any_of(it->second.begin(), it->second.end(), [&](uint32_t u) { return u != a && u != b; });
  }

  // Whether a path leads from `first` to the later unit `last` through a third unit. Only units between them can be on
  // the path. When there is no path, reached_ contains the units between them to which `first` leads.
  bool path_between(uint32_t first, uint32_t last) {
    bool found = false;
    reached_.clear();
    ++search_;
    const auto lead = [&](uint32_t from, uint32_t to) {
      found |= to == last && from != first;
      if (place_[to] >= place_[last] || seen_[to] == search_) return;
      seen_[to] = search_;
      reached_.push_back(to);
    };
    const auto follow = [&](uint32_t u) {
      if (next_effect_[u] != kNone) lead(u, next_effect_[u]);
      for (ValueId v : units_[u].writes)
        if (const auto it = readers_.find(v); it != readers_.end())
          for (uint32_t user : it->second) lead(u, user);
    };
    follow(first);
    for (size_t i = 0; i < reached_.size() && !found; ++i) follow(reached_[i]);
    return found;
  }
  // Puts `merged` at the position of the later unit, followed by the units to which the earlier unit led.
  void reorder(uint32_t first, uint32_t last, uint32_t merged) {
    const uint32_t begin = place_[first], end = place_[last];
    std::vector<uint32_t> slice{merged == first ? last : first}, after;
    for (uint32_t i = begin + 1; i < end; ++i) (seen_[order_[i]] == search_ ? after : slice).push_back(order_[i]);
    slice.push_back(merged);
    slice.insert(slice.end(), after.begin(), after.end());
    for (uint32_t i = begin; i <= end; ++i) place_[order_[i] = slice[i - begin]] = i;
  }

  Device device(uint32_t u) const { return device_of(graph_, units_[u].group); }
  const CostModel& model_of(uint32_t u) const { return cost_model_of(device(u).kind); }
  bool few_rows(const Group& group, const CostModel& model) const {
    if (!group.has_inner()) return false;
    int64_t rows = 1, points = 1;
    for (const loop::Dim& dim : group.dims) {
      const int64_t n = graph_.env().typical_or(dim.extent, 64);
      points *= n;
      if (dim.kind == loop::Dim::Kind::Outer) rows *= n;
    }
    return rows < model.few_rows && points > model.many_points;
  }

  bool try_merge(uint32_t a, uint32_t b) {
    const auto [first, last] = place_[a] < place_[b] ? std::pair(a, b) : std::pair(b, a);
    if (path_between(first, last) || !try_alignments(a, b)) return false;
    reorder(first, last, a);
    return true;
  }
  bool try_alignments(uint32_t a, uint32_t b) {
    const Group &x = units_[a].group, &y = units_[b].group;
    if (accept(a, b, align_in_order(graph_.env(), build_.memory.index_vars(), x, y))) return true;
    for (ValueId v : units_[a].writes)
      if (contains(units_[b].reads, v) && accept(a, b, align_through(build_, x, y, v))) return true;
    for (ValueId v : units_[b].writes)
      if (contains(units_[a].reads, v) && accept(a, b, align_through(build_, y, x, v))) return true;
    return false;
  }

  // A concatenation is read from memory. A kernel which writes a window of it must therefore not read it.
  static bool loads_what_it_stores(const Group& group, const BuiltKernel& built) {
    return std::any_of(group.roots.begin(), group.roots.end(),
                       [&](const Root& root) { return contains(built.reads, root.into); });
  }

  bool accept(uint32_t a, uint32_t b, std::optional<Group> group) {
    if (!group) return false;
    const bool was_parallel = !units_[a].group.has_inner() || !units_[b].group.has_inner();
    if (was_parallel && few_rows(*group, model_of(a))) return false;
    for (Root& root : group->roots) root.stored = root.into != root.value || needed_beside(root.value, a, b);
    std::optional<BuiltKernel> built = build_kernel(build_, *group, &kLimits);
    if (!built || loads_what_it_stores(*group, *built)) return false;
    unindex(a);
    unindex(b);
    alive_[b] = false;
    ++version_[a];
    span_[a] = {std::min(span_[a].first, span_[b].first), std::max(span_[a].last, span_[b].last)};
    Unit& unit = units_[a];
    unit.group = std::move(*group);
    unit.reads = built->reads;
    unit.built = std::move(*built);
    unit.writes.clear();
    for (const Root& root : unit.group.roots)
      if (root.stored && !contains(unit.writes, root.into)) unit.writes.push_back(root.into);
    index(a);
    return true;
  }

  const Build& build_;
  const Graph& graph_;
  std::vector<Unit>& units_;
  struct Span {  // counted in extern calls before the unit
    uint32_t first, last;
  };
  std::vector<Span> span_;
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> next_effect_;  // of a call with side effects: the call which must follow it
  std::vector<uint32_t> version_;
  std::vector<bool> alive_;
  // All units in an order in which each follows the units it reads from. A merged unit keeps its position.
  // place_[order_[i]] == i.
  std::vector<uint32_t> order_, place_;
  std::vector<uint32_t> seen_, reached_;  // of the last search for a path; seen: equal to search_
  uint32_t search_ = 0;
  std::unordered_map<ValueId, std::vector<uint32_t>> readers_, writers_;
  std::unordered_set<ValueId> kept_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

void merge_units(const Build& build, std::vector<Unit>& units) { Merger(build, units).run(); }

}  // namespace cresset::fuse
