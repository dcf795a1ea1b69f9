"""What is wrong in the paper as printed, what is right, and, where privacy is at stake, by how much.

The reasoning for each is in docs/paper.md. Numbers 1 to 6 come with a measurement of the literal version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from . import literal
from .literal import Measured

__all__ = ["ERRATA", "Erratum", "Measured"]


@dataclass(frozen=True)
class Erratum:
    """One error of the paper. breaks: what a literal copy would lose. measure: the literal version's true epsilon."""

    number: int
    title: str
    printed: str
    correct: str
    breaks: Literal["privacy", "accuracy"]
    measure: Callable[[], Measured] | None = None


ERRATA: tuple[Erratum, ...] = (
    Erratum(
        1,
        "Exponential mechanism (Algorithm 1)",
        "P[H] proportional to exp(S/(2 epsilon))",
        "P[H] proportional to exp(epsilon S/2): the score has sensitivity 1. As printed, a smaller "
        "epsilon is less private.",
        "privacy",
        literal.exponential_mechanism,
    ),
    Erratum(
        2,
        "Noise of SmallBinom (Algorithm 4)",
        "mean of 1{N = 0}, plus Z, Z ~ Lap(1/epsilon)",
        "plus Z/s, as in its proof. As printed it is epsilon/s-private, and nothing of the estimate is left.",
        "accuracy",
        literal.small_binom_noise,
    ),
    Erratum(
        3,
        "Symbols that a user changes (Theorem 8)",
        "neighbours differ in at most min(k, m) symbols",
        "min(k, 2m) when a user is replaced; min(k, m) when one is added or removed. The printed factor 8 "
        "absorbs it; a tight composition does not.",
        "privacy",
        literal.changed_symbols,
    ),
    Erratum(
        4,
        "Zeros in Appendix E (and Algorithm 5 under add-remove)",
        "sum over users with at least m-hat rows of 1{N_i = 0}, composed over min(k, m-hat) symbols",
        "a user who leaves the set changes that sum for every symbol. Use sum 1{N_i > 0} and s-hat less it; "
        "in PHS count s-hat - #{N_i not in W} where W contains 0.",
        "privacy",
        literal.appendix_e_zeros,
    ),
    Erratum(
        5,
        "Subsampling (Appendix E)",
        "select m-hat samples of each user (not said: once for all symbols)",
        "draw once for each user, before splitting by symbol: fresh draws for each symbol touch more "
        "than m-hat symbols.",
        "privacy",
        literal.fresh_subsamples,
    ),
    Erratum(
        6,
        "Threshold of the median (Appendix E)",
        "the largest j with sum_{i >= j} t'_i >= s/2 - eta v log(v/beta), exact s",
        "right when s is public (replace). Under add-remove s is private: use the noisy total, and noise of scale "
        "1/epsilon, not 2/epsilon.",
        "privacy",
        literal.exact_s_threshold,
    ),
    Erratum(
        7,
        "Distance in Binom (Algorithm 2)",
        "PHS(H, D, c alpha/5, epsilon)",
        "PHS works in total variation, half of l1: PHS(H, D, c alpha/10, epsilon).",
        "accuracy",
    ),
    Erratum(
        8,
        "Number of hypotheses (PHS lemma)",
        "log(4m/beta)",
        "log(4d/beta), d the number of hypotheses.",
        "accuracy",
    ),
    Erratum(
        9,
        "Constants of Theorem 6",
        "s >= 16 log(20m/(alpha beta))/alpha^2 + 16 log(20m/(alpha beta))/(alpha epsilon)",
        "its proof, with errata 7 and 8, gives 800/c^2 and 80/c and log(80m/(c alpha beta)), c the constant of "
        "Theorem 5.",
        "accuracy",
    ),
    Erratum(
        10,
        "Constant of Theorem 5",
        "c = 1/350",
        "an artefact of the proof: no ratio below 0.634 occurs for m up to 1000.",
        "accuracy",
    ),
    Erratum(
        11,
        "Line 3 of Algorithm 5",
        "Dense(D, epsilon', alpha'')",
        "Binom(D_i, epsilon', alpha'') for each symbol, as in the proof: Dense would split epsilon' and "
        "rescale alpha'' again.",
        "accuracy",
    ),
    Erratum(
        12,
        "Theorem 8's c",
        "c = 4/m",
        "c = 4 (the lemma needs p <= c/m with p up to 4/m), and so m >= 8.",
        "accuracy",
    ),
    Erratum(
        13,
        "SmallBinom clamped at 0",
        "(1 - p)^m = 0, so p = 1",
        "cap p at 4/m, where the estimate is valid.",
        "accuracy",
    ),
    Erratum(
        14,
        "Theorem 7",
        "k/(sqrt(m) alpha epsilon) without sqrt(log(1/delta)); e^epsilon' <= 2 epsilon'",
        "with sqrt(log(1/delta)); e^epsilon' - 1 <= 2 epsilon'.",
        "accuracy",
    ),
    Erratum(
        15,
        "Modified PHS (Appendix E)",
        "exp(-s zeta^2 alpha^2/32)",
        "s_mhat >= s/4 gives exp(-s zeta^2 alpha^2/128): 32 becomes 128.",
        "accuracy",
    ),
    Erratum(
        16,
        "Bins of the median (Appendix E)",
        "b_i = 2 b_{i-1} for i >= 1, v = log m_max bins",
        "doubling starts at i = 2; floor(log2 m_max) + 2 bins; j* = 0 gives m-hat = 0, and j* may not exist.",
        "accuracy",
    ),
    Erratum(
        17,
        "SmallBinom lemma of Appendix E",
        "gamma/(m-hat epsilon); 64 in the statement, 256 in the proof",
        "gamma/m-hat; 256.",
        "accuracy",
    ),
    Erratum(
        18,
        "Lower bounds",
        "0.8M in Fano; 3 alpha in the restricted bound; TV = O(sqrt(m) alpha^2); C2 k/(s epsilon)",
        "0.4M; 1.5 alpha; O(sqrt(m) alpha); C2 k/(s sqrt(m) epsilon).",
        "accuracy",
    ),
    Erratum(
        19,
        "Pinsker's inequality (upper bound of Theorem 5)",
        "l1 <= sqrt(KL/2)",
        "that bounds total variation; l1 <= sqrt(2 KL). The lemma's factor 2 still holds, as sqrt(2) <= 2.",
        "accuracy",
    ),
    Erratum(
        20,
        "Step (b) of the lower bound for small p",
        "1 - exp(-m(q-p)/(1-p)) >= 1 - exp(-2m(q-p))",
        "reversed: 1/(1-p) <= 2. What holds is |(1-q)^m - (1-p)^m| >= 0.78 e^(-1.5c) min(m|q-p|, 1/2); without "
        "the 0.78 it fails at p = 0, mq = 1/2.",
        "accuracy",
    ),
    Erratum(
        21,
        "Conditions of Lemma 2 (SmallBinom)",
        "s >= 64 e^(3c) max(c, 1) log(3/beta) in the statement, 64 e^(3c) m log(3/beta) in the proof",
        "the proof needs s of order e^(3c) max(c, 1) log(4/beta) (four events of probability beta/4), with more "
        "than 64.",
        "accuracy",
    ),
)
