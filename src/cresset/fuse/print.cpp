// Prints plans for readers and golden tests.
#include <fmt/format.h>

#include "fuse/plan.h"

namespace cresset::fuse {
namespace {

class Printer {
 public:
  Printer(const Graph& graph, const Plan& plan) : graph_(graph), plan_(plan) {}

  std::string run() {
    for (const Unit& unit : plan_.units) unit.node.valid() ? call(unit) : kernel(unit.group, unit);
    return std::move(out_);
  }

 private:
  std::string name(ValueId v) const {
    const std::string& given = graph_.value(v).name;
    return given.empty() ? fmt::format("%{}", v.index) : given;
  }
  std::string names(const std::vector<ValueId>& values) const {
    std::string out;
    for (ValueId v : values) out += fmt::format("{}{}", out.empty() ? "" : ", ", name(v));
    return out;
  }
  std::string domain(const Group& group) const {
    std::string out;
    bool inner = false;
    for (const loop::Dim& dim : group.dims) {
      const bool starts_inner = dim.kind == loop::Dim::Kind::Inner && !inner;
      out += fmt::format("{}{}", starts_inner ? " | " : out.empty() ? "" : ", ", graph_.env().to_string(dim.extent));
      inner |= starts_inner;
    }
    return out;
  }
  std::string roots(const Group& group) const {
    std::string out;
    for (const Root& root : group.roots) {
      const graph::NodeId node = graph_.value(root.value).node;
      const std::string op = node.valid() ? std::string(graph::op_name(graph_.node(node).op)) : "copy";
      out += fmt::format("{}{}", out.empty() ? "" : ", ", op);
    }
    return out;
  }
  void call(const Unit& unit) {
    out_ += fmt::format("{} = {} reads {}\n", names(unit.writes), graph::op_name(graph_.node(unit.node).op),
                        names(unit.reads));
  }
  void kernel(const Group& group, const Unit& unit) {
    out_ += fmt::format("kernel {} ({}) = {{{}}} reads {} writes {}\n", next_++, domain(group), roots(group),
                        names(unit.reads), names(unit.writes));
  }

  const Graph& graph_;
  const Plan& plan_;
  int next_ = 0;
  std::string out_;
};

}  // namespace

std::string print(const Graph& graph, const Plan& plan) { return Printer(graph, plan).run(); }

}  // namespace cresset::fuse
