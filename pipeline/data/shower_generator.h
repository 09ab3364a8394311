#pragma once

// Showers by parametrisation, of electrons with the profiles of shower_profile.h: in each layer the
// visible energy fluctuates as a gamma distribution around its mean and comes in spots, whose
// number is a Poisson distribution's and whose energies are an exponential one's, spread around the
// axis. The sizes of both fluctuations are those of Geant4's showers: of single cells far from the
// axis, and of what is left of the layers' variances. A photon is a pair of electrons from where it
// converts, 9/7 of a radiation length deep on average; a charged pion is a track, and hadrons from
// where it interacts, if it does (hadron_profile.h).
//
// A shower is a function of (seed, event number) and the options: not of the threads, nor of how
// many others are made. No libm: the bits are the same on every machine.

#include <array>
#include <cstdint>
#include <numbers>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "pipeline/data/shower_detector.h"
#include "pipeline/data/shower_profile.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

// Names the formulae and constants; stored in files, part of the name of a cached dataset.
inline constexpr std::uint32_t kShowerVersion = 2;

// The numbers are those of the Particle Data Group.
enum class Particle : std::uint8_t { kElectron = 11, kPhoton = 22, kPion = 211 };
inline constexpr std::array kParticles{Particle::kElectron, Particle::kPhoton, Particle::kPion};
std::string_view text(Particle particle);  // "electron"
std::optional<Particle> find_particle(std::string_view name);

struct ShowerOptions {
  DetectorKind detector = DetectorKind::kFixed25;
  std::uint64_t seed = 1;
  // Primary energy, uniform between the two; 1 to 1000 GeV.
  double min_energy_gev = 10;
  double max_energy_gev = 500;
  // Polar angle, uniform between the two; unset: the detector's range. Only kAngle51 takes others
  // than pi/2.
  std::optional<double> min_angle_rad = std::nullopt;
  std::optional<double> max_angle_rad = std::nullopt;
  // Cells under it are stored as 0.
  double threshold_gev = 1e-6;
  // Each shower is of one of these, drawn anew; at least one.
  std::vector<Particle> particles{Particle::kElectron};
};

// The particle that made a shower.
struct Primary {
  float energy_gev = 0;
  float theta_rad = std::numbers::pi_v<float> / 2;
  Particle particle = Particle::kElectron;
};

class ShowerGenerator {
 public:
  // Errors (kUsage): energies or angles out of range or order.
  static runtime::Result<ShowerGenerator> create(const ShowerOptions& options);

  const ShowerOptions& options() const { return options_; }
  const Detector& detector() const { return *detector_; }

  // Events first .. first + primaries.size() - 1, spread over the team. cells: [n][X][Y][Z] in the
  // detector's stored units (GeV, or GeV x 50); both spans belong to the caller and are
  // overwritten. One caller at a time.
  void generate(std::uint64_t first, std::span<Primary> primaries, std::span<float> cells,
                runtime::ThreadTeam& team) const;
  // One event on the caller's thread.
  Primary generate(std::uint64_t event, std::span<float> cells) const;

 private:
  struct Development;
  struct Streams;
  struct Part;
  struct Step;
  struct SpotGroup;

  explicit ShowerGenerator(const ShowerOptions& options);
  Primary draw_primary(std::uint64_t event) const;
  void develop(Primary primary, std::uint64_t event, std::span<double> planes) const;
  void develop_photon(Primary primary, Streams& streams) const;
  void develop_pion(Primary primary, Streams& streams) const;
  // A part of the shower that is one of an electron of this energy and begins so deep.
  void develop_electron(Primary primary, double energy_gev, double start, Streams& streams) const;
  void develop_part(Primary primary, const Part& part, Streams& streams) const;
  void cross(std::uint32_t layer, Development& shower) const;
  static double mean_gev(double t, double path, const AbsorberMixture& mixture,
                         const Development& shower);
  static RadialProfile radial_at(double t, double spread_mm, const Part& part);
  Step step_at(double t, double path, const AbsorberMixture& mixture,
               const Development& shower) const;
  void scatter(const Step& step, double gev, std::uint32_t layer, Development& shower) const;
  template <bool kTilted>
  void place(const SpotGroup& group, std::uint32_t layer, Development& shower) const;
  std::uint32_t layer_at(double z_mm, std::uint32_t near) const;
  void read_out(std::span<const double> planes, std::span<float> cells) const;
  Primary make(std::uint64_t event, std::span<double> planes, std::span<float> cells) const;

  ShowerOptions options_;
  const Detector* detector_;
  double last_silicon_x0_ = 0;  // where the last piece's layer begins, along z
  std::vector<double> layer_end_mm_;
  double min_angle_ = 0, max_angle_ = 0;
};

}  // namespace troupe::pipeline
