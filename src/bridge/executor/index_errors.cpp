#include "bridge/executor/index_errors.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

#include "base/log.h"
#include "runtime/index_reports.h"

namespace cresset::bridge {
namespace {

template <class Error>
class Reported final : public Error, public IndexReported {
 public:
  using Error::Error;
};

[[noreturn]] void raise(const ReportedSite& site, int64_t index) {
  const c10::SourceLocation here{__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  const std::string text = site.extent == 0 ? "index is out of bounds for dimension with size 0"
                                            : fmt::format("index {} is out of bounds for dimension {} with size {}",
                                                          index, site.dim, site.extent);
  CRESSET_LOG(Recompiles, fmt::format("{}: {}", site.location, text));
  switch (site.fault) {
    case IndexFault::OfDimension:
      throw Reported<c10::IndexError>(here, text);
    case IndexFault::AtRuntime:
      throw Reported<c10::Error>(here, text);
    case IndexFault::InSelf:
    case IndexFault::None:
      break;
  }
  throw Reported<c10::IndexError>(here, "index out of range in self");
}

}  // namespace

// All words of the process. Pages are never freed: a kernel of a program that is gone may still run. Its words are used
// again as late as possible.
class ReportBoard {
 public:
  static ReportBoard& get() {
    static ReportBoard& board = *new ReportBoard;
    return board;
  }

  ReportWords::Place take(const std::shared_ptr<runtime::GpuDevice>& device, std::vector<ReportedSite> sites) {
    const std::lock_guard lock(mutex_);
    const ReportWords::Place place = find(device, sites.size());
    std::move(sites.begin(), sites.end(), pages_[place.page].sites.begin() + static_cast<std::ptrdiff_t>(place.first));
    any_ = true;
    return place;
  }
  void give_back(const ReportWords::Place& place) {
    const std::lock_guard lock(mutex_);
    free_.push_back(place);
  }
  void* address(const ReportWords::Place& place) {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t*>(pages_[place.page].reports->words()) + place.first;
  }
  void raise_reported() {
    if (!any_) return;
    std::optional<std::pair<ReportedSite, int64_t>> first;
    {
      const std::lock_guard lock(mutex_);
      for (Page& page : pages_) {
        const auto report = page.reports->take();
        if (report && !first) first.emplace(page.sites[report->site], report->index);
      }
    }
    if (first) raise(first->first, first->second);
  }

 private:
  static constexpr size_t kWords = 64, kFreeLonger = 16;
  struct Page {
    std::shared_ptr<runtime::GpuDevice> device;
    std::unique_ptr<runtime::IndexReports> reports;
    std::vector<ReportedSite> sites;
    size_t used = 0;
  };

  ReportWords::Place find(const std::shared_ptr<runtime::GpuDevice>& device, size_t count) {
    const auto fits = [&](const ReportWords::Place& p) { return p.count == count && pages_[p.page].device == device; };
    const auto known = std::find_if(free_.begin(), free_.end(), fits);
    if (known != free_.end() && free_.size() > kFreeLonger) {
      const ReportWords::Place place = *known;
      free_.erase(known);
      return place;
    }
    const bool has_room =
        !pages_.empty() && pages_.back().device == device && pages_.back().sites.size() - pages_.back().used >= count;
    if (!has_room) {
      const size_t words = std::max(kWords, count);
      pages_.push_back({device, std::make_unique<runtime::IndexReports>(device, words),
                        std::vector<ReportedSite>(words, ReportedSite{IndexFault::None, 0, 0, ""}), 0});
    }
    Page& page = pages_.back();
    page.used += count;
    return {pages_.size() - 1, page.used - count, count};
  }

  std::mutex mutex_;
  std::atomic<bool> any_ = false;
  std::vector<Page> pages_;
  std::deque<ReportWords::Place> free_;
};

ReportWords::ReportWords(std::shared_ptr<runtime::GpuDevice> device, std::vector<ReportedSite> sites)
    : place_(ReportBoard::get().take(device, std::move(sites))) {}

ReportWords::~ReportWords() { ReportBoard::get().give_back(place_); }

void* ReportWords::address() const { return ReportBoard::get().address(place_); }

void raise_reported() { ReportBoard::get().raise_reported(); }

}  // namespace cresset::bridge
