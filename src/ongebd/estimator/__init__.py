"""The paper's method, ESTimator: an anticipator, its error, and the Online Boundary Discriminator."""

from ongebd.estimator.anticipation import Anticipator, cosine_error
from ongebd.estimator.discriminator import BoundaryDiscriminator

__all__ = ["Anticipator", "BoundaryDiscriminator", "cosine_error"]
