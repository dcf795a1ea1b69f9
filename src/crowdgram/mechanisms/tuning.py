"""The tunable numbers of the estimator; what belongs to one formula stands beside it. Each is public; none changes what
is promised, only how well the budget is used. `bench/constants.py` measures what each of them is worth.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TUNING", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """Shares of the budget, prior beliefs about crowds, and the resolution of the arithmetic.

    Pilot queries, as parts of epsilon. Each costs what is left of the budget only if it takes place; if items have to
    be found first, rounds pay for all of them.
        first_look, second_look: users by rows. A first look tells large crowds; a second one, in one piece, shows small
            groups of heavy users.
        users_look: how many users there are, if that is not known from the looks before.
        halves_look, halves_detail: how much users differ, one of two looks: as much as it is worth to the choice, or
            the first; at most the second over the root of the number of users, in epsilon, so that the noise of a bin
            is as large as chance would make it.
        further_histograms: what histograms of users by rows may cost in all before plain Laplace noise. Those after the
            two looks are not reserved, and are bought while knowing more is worth its price. The second look of a
            table with few items is large already: as much again tells a far bin of noise from heavy users.

    Rounds.
        least_round, most_rounds: the smallest share of a round, and how many there are at most. Shares are planned by
            the noise that they promise; a smaller one would save little, and tell nothing of how levels differ.
        histogram_detail, histogram_least, histogram_most: the noise per bin of a histogram of distances has a standard
            deviation of users / histogram_detail, for a share of the budget within these limits.
        mass_part: of a user's norm, for the coordinate that measures the divisor: costs a fiftieth, saves far more.
        level_octaves: between two radii. A level for each doubling; fewer see less of the bias, more divide the noise.
        most_sums: coordinates times levels in a round, so that a million items keep to a few levels.

    Beliefs before anything is measured.
        first_alarm, more_alarm, beside: the chance that noise alone is taken for users: for the first bins of a
            histogram, for others far from them (half as much with each octave), and for those next to them.
        fall, fall_spread: users fall by this factor e^-fall for each octave beyond what is seen (median, spread of its
            logarithm): between a power law and a steep end.
        disagreement, disagreement_spread: how far heavy users differ from the crowd in l1, over what is possible.
        drift, drift_spread: variance between shells an octave apart, over the share squared. On the tables that were
            tried its geometric mean is 0.004 below the median of mass and 0.012 above it, and its logarithm has a
            spread of 2.
        mass_doubt: how well a histogram predicts the mass of a level, relative.

    Resolution.
        step: width of bins and shells, in octaves.
    """

    first_look: float = 0.01
    second_look: float = 0.04
    users_look: float = 0.01
    halves_look: float = 0.015
    halves_detail: float = 1.3
    further_histograms: float = 0.5
    least_round: float = 0.02
    most_rounds: int = 6
    histogram_detail: float = 30.0
    histogram_least: float = 0.004
    histogram_most: float = 0.05
    mass_part: float = 0.2
    level_octaves: float = 1.0
    most_sums: int = 800_000
    first_alarm: float = 1e-5
    more_alarm: float = 1e-3
    beside: float = 0.01
    fall: float = 3.5
    fall_spread: float = 1.0
    disagreement: float = 0.28
    disagreement_spread: float = 0.7
    drift: float = 0.02
    drift_spread: float = 2.0
    mass_doubt: float = 0.5
    step: float = 0.25


TUNING = Tuning()
