"""MTNM's names, numbers and enumerations, and what each is in MTOSI. The page docs/mtnm.md shows these tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mtosi_jms.stubs.fmw.fts import FileTransferStatusEnumType
from mtosi_jms.stubs.fmw.gen import ObjectEnumType
from mtosi_jms.stubs.nra.com import (
    AcknowledgeIndicationType,
    EquipmentProtectionGroupTypeEnumType,
    EquipmentSwitchReasonEnumType,
    PerceivedSeverityType,
    ProtectionTypeEnumType,
    ServiceAffectingType,
    SwitchReasonType,
)
from mtosi_jms.stubs.nra.pm import (
    PerformanceMonitoringGranularityType,
    PerformanceMonitoringLocationType,
    PerformanceMonitoringThresholdTypeType,
)
from mtosi_jms.stubs.nra.tca import AcknowledgeIndicationType as AlertAcknowledgeType
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType
from mtosi_jms.stubs.nrf.com import (
    ConnectionDirectionType,
    DirectionalityType,
    EquipmentHolderEnumType,
    HolderStateType,
    ResourceFulfillmentStateEnumType,
    SubnetworkConnectionTypeType,
    TerminationModeType,
    TerminationPointConnectionStateType,
    TerminationPointProtectionAssociationType,
)
from mtosi_jms.stubs.nrf.me import CommunicationStateType
from mtosi_jms.stubs.rp.sdc import CurrentOperationStatusType
from mtosi_jms.xmlbind import XmlEnum

OTHER_TYPE_NAMES: Final[Mapping[str, str]] = {
    "NT_HEALTH": "NT_HEARTBEAT",
    "NT_HEART_BEAT": "NT_HEARTBEAT",
    "NT_WDMPROTECTION_SWITCH": "NT_PROTECTION_SWITCH",
    "NT_ATMPROTECTION_SWITCH": "NT_PROTECTION_SWITCH",
    "NT_RPRPROTECTION_SWITCH": "NT_PROTECTION_SWITCH",
}
"""Maps other names of event types, which are in use, to MTNM's names."""

STEPS: Final[Mapping[str, str]] = {
    "EMS": "MD",
    "ManagedElement": "ME",
    "EquipmentHolder": "EH",
    "Equipment": "EQ",
    "PTP": "PTP",
    "FTP": "FTP",
    "CTP": "CTP",
    "GTP": "GTP",
    "TPPool": "TPPOOL",
    "TopologicalLink": "TL",
    "SubnetworkConnection": "SNC",
    "MultiLayerSubnetwork": "MLSN",
    "PGP": "PG",
    "EPGP": "EPG",
    "PMP": "PMP",
    "AID": "AID",
    "ASAP": "ASAP",
    "TCAParameterProfile": "TCAPP",
    "TransmissionDescriptor": "TMD",
    "TrafficDescriptor": "TMD",
    "TrafficConditioningProfile": "TCPROFILE",
    "FlowDomain": "FD",
    "FlowDomainFragment": "FDFR",
    "MatrixFlowDomain": "MFD",
    "OS": "OS",
}
"""Maps the kind of a step in a name from MTNM to MTOSI."""

QUALIFIERS: Final[Mapping[str, str]] = {
    "OT_EPROTECTION_GROUP": "EPG",
    "OT_TCA_PARAMETER_PROFILE": "TCAPP",
    "OT_PMP": "PMP",
    "OT_GTP": "GTP",
    "OT_ASAP": "ASAP",
    "OT_TRANSMISSION_DESCRIPTOR": "TMD",
    "OT_FLOW_DOMAIN": "FD",
    "OT_FLOW_DOMAIN_FRAGMENT": "FDFR",
    "OT_MATRIX_FLOW_DOMAIN": "MFD",
    "OT_TRAFFIC_CONDITIONING_PROFILE": "TCPROFILE",
}
"""Maps MTNM's objectTypeQualifier, which says what an OT_AID is, to MTOSI's type."""

_RATES: Final = """
    Not_Applicable T1_and_DS1_1_5M T2_and_DS2_6M T3_and_DS3_45M E1_2M E2_8M E3_34M E4_140M E5_565M
    VT1_5_and_TU11_VC11 VT2_and_TU12_VC12 VT6_and_TU2_VC2 Low_Order_TU3_VC3 STS1_and_AU3_High_Order_VC3
    STS3c_and_AU4_VC4 STS12c_and_VC4_4c STS48c_and_VC4_16c STS192c_and_VC4_64c Section_OC1_STS1_and_RS_STM0
    Section_OC3_STS3_and_RS_STM1 Section_OC12_STS12_and_RS_STM4 Section_OC48_STS48_and_RS_STM16
    Section_OC192_STS192_and_RS_STM64 Line_OC1_STS1_and_MS_STM0 Line_OC3_STS3_and_MS_STM1
    Line_OC12_STS12_and_MS_STM4 Line_OC48_STS48_and_MS_STM16 Line_OC192_STS192_and_MS_STM64
"""
"""Names of layer rates behind `LR_`, by MTNM's numbers from 1."""
_MORE_RATES: Final = """
    Optical_Channel Optical_Multiplex_Section Optical_Transmission_Section ATM_NI ATM_VP ATM_VC PHYSICAL_ELECTRICAL
    PHYSICAL_OPTICAL PHYSICAL_MEDIALESS OPTICAL_SECTION DIGITAL_SIGNAL_RATE Async_FOTS_150M Async_FOTS_417M
    Async_FOTS_560M Async_FOTS_565M Async_FOTS_1130M Async_FOTS_1G7 Async_FOTS_1G8 D1_Video ESCON ETR Fast_Ethernet
    FC_12_133M FC_25_266M FC_50_531M FC_100_1063M FDDI FICON Gigabit_Ethernet DS0_64K ISDN_BRI POTS DSR_OC1_STM0
    DSR_OC3_STM1 DSR_OC12_STM4 DSR_OC24_STM8 DSR_OC48_and_STM16 DSR_OC192_and_STM64 DSR_OC768_and_STM256 DSR_1_5M
    DSR_2M DSR_6M DSR_8M DSR_34M DSR_45M DSR_140M DSR_565M DSR_Gigabit_Ethernet Section_OC24_STS24_and_RS_STM8
    Line_OC24_STS24_and_MS_STM8 Section_OC768_STS768_and_RS_STM256 Line_OC768_STS768_and_MS_STM256
    STS768c_and_VC4_256c DSR_2xSTM1 E20_2x2M E30_8x2M Ethernet DSR_Fast_Ethernet Encapsulation Fragment
    STS6c_and_VC4_2c STS9c_and_VC4_3c STS21c_and_VC4_7c STS24c_and_VC4_8c OCH_Data_Unit_1 OCH_Data_Unit_2
    OCH_Data_Unit_3 OCH_Transport_Unit_1 OCH_Transport_Unit_2 OCH_Transport_Unit_3 DSR_OTU1 DSR_OTU2 DSR_OTU3
    DSR_10Gigabit_Ethernet
"""
"""The same from 40."""
LAYER_RATES: Final[Mapping[int, LayerRateEnumType]] = {
    number: LayerRateEnumType(f"LR_{name}")
    for number, name in [*enumerate(_RATES.split(), 1), *enumerate(_MORE_RATES.split(), 40), (299, "DSL")]
}
"""Maps MTNM's numbers of layer rates to MTOSI's layer rates."""

LAYER_NAMES: Final[Mapping[str, LayerRateEnumType]] = {
    rate.value.casefold(): rate for rate in LayerRateEnumType if not rate.value.endswith((".", "_EXT"))
}
"""Maps names of layer rates in lower case, which are the same in MTNM and MTOSI, to MTOSI's layer rates."""


@dataclass(frozen=True)
class Choices:
    """An enumeration of MTNM.

    Attributes:
        members: maps MTNM's members, in the order of their numbers, to MTOSI's values.
        numbered: whether the numbers are known; otherwise only names are read.
        boolean: the values for the booleans False and True; None if a boolean cannot be read.
        prefix: prefix of MTNM's names; names without it are read as well.
        others: further names that are read; they have no numbers.
    """

    name: str
    members: Mapping[str, XmlEnum]
    numbered: bool = True
    boolean: tuple[XmlEnum, XmlEnum] | None = None
    prefix: str = ""
    others: Mapping[str, XmlEnum] = field(default_factory=dict)
    folded: Mapping[str, XmlEnum] = field(init=False, repr=False, compare=False)
    by_number: tuple[XmlEnum, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        folded: dict[str, XmlEnum] = {}
        for name, value in [*self.members.items(), *self.others.items()]:
            for form in (name, name.removeprefix(self.prefix), value.value):
                folded.setdefault(form.casefold(), value)
        object.__setattr__(self, "folded", folded)
        object.__setattr__(self, "by_number", tuple(self.members.values()) if self.numbered else ())


def _same(name: str, kind: type[XmlEnum], *, numbered: bool = False, prefix: str = "") -> Choices:
    """Return an enumeration with the same names in MTNM and MTOSI."""
    return Choices(name, {one.value: one for one in kind if one.value != "MINOR_EXT"}, numbered, None, prefix)


def _members(kind: type[XmlEnum], prefix: str, names: str) -> dict[str, XmlEnum]:
    """Return MTNM's members, in the order of their numbers, with MTOSI's values. `names`: MTNM's names behind the
    prefix, each with `=` and MTOSI's value where that is another."""
    pairs = (one.partition("=") for one in names.split())
    return {f"{prefix}{name}": kind(value or name) for name, _, value in pairs}


OBJECT_TYPE: Final = Choices(
    "ObjectType_T",
    _members(
        ObjectEnumType,
        "OT_",
        "EMS=MD MANAGED_ELEMENT=ME MULTILAYER_SUBNETWORK=MLSN TOPOLOGICAL_LINK=TL SUBNETWORK_CONNECTION=SNC "
        "PHYSICAL_TERMINATION_POINT=PTP CONNECTION_TERMINATION_POINT=CTP TERMINATION_POINT_POOL=TPPOOL "
        "EQUIPMENT_HOLDER=EH EQUIPMENT=EQ PROTECTION_GROUP=PG TRAFFIC_DESCRIPTOR=TMD AID",
    ),
    prefix="OT_",
    others={name: ObjectEnumType(kind) for name, kind in QUALIFIERS.items()},
)
SEVERITY: Final = Choices(
    "PerceivedSeverity_T",
    _members(PerceivedSeverityType, "PS_", "INDETERMINATE CRITICAL MAJOR MINOR WARNING CLEARED"),
    prefix="PS_",
)
SERVICE_AFFECTING: Final = Choices(
    "ServiceAffecting_T",
    _members(ServiceAffectingType, "SA_", "UNKNOWN SERVICE_AFFECTING NON_SERVICE_AFFECTING"),
    boolean=(ServiceAffectingType.NON_SERVICE_AFFECTING, ServiceAffectingType.SERVICE_AFFECTING),
    prefix="SA_",
)
ACKNOWLEDGE: Final = Choices(
    "AcknowledgeIndication_T",
    _members(
        AcknowledgeIndicationType,
        "AI_",
        "EVENT_ACKNOWLEDGED=ACKNOWLEDGED EVENT_UNACKNOWLEDGED=UNACKNOWLEDGED NA=NOT_APPLICABLE",
    ),
    boolean=(AcknowledgeIndicationType.UNACKNOWLEDGED, AcknowledgeIndicationType.ACKNOWLEDGED),
    prefix="AI_",
)
ALERT_ACKNOWLEDGE: Final = Choices(
    "AcknowledgeIndication_T",
    _members(AlertAcknowledgeType, "AI_", "EVENT_ACKNOWLEDGED EVENT_UNACKNOWLEDGED NA"),
    boolean=(AlertAcknowledgeType.EVENT_UNACKNOWLEDGED, AlertAcknowledgeType.EVENT_ACKNOWLEDGED),
    prefix="AI_",
)
TRANSFER: Final = Choices(
    "FileTransferStatus_T",
    _members(FileTransferStatusEnumType, "", "FT_IN_PROGRESS FT_FAILED FT_COMPLETED"),
    prefix="FT_",
)
PROTECTION: Final = Choices("ProtectionType_T", _members(ProtectionTypeEnumType, "PT_", "MSP_APS SNCP"), prefix="PT_")
SWITCH_REASON: Final = Choices(
    "SwitchReason_T",
    _members(
        SwitchReasonType,
        "SR_",
        "NA=NOT_APPLICABLE RESTORED SIGNAL_FAIL SIGNAL_MISMATCH SIGNAL_DEGRADE AUTOMATIC_SWITCH MANUAL",
    ),
    prefix="SR_",
)
EQUIPMENT_PROTECTION: Final = Choices(
    "EProtectionGroupType_T",
    _members(EquipmentProtectionGroupTypeEnumType, "", "M_FOR_N M:N"),
    numbered=False,
    prefix="EPGT_",
)
EQUIPMENT_REASON: Final = Choices(
    "ESwitchReason_T",
    _members(EquipmentSwitchReasonEnumType, "ESR_", "NA=NOT_APPLICABLE FAILURE MANUAL"),
    numbered=False,
    prefix="ESR_",
)
BACKUP: Final = Choices(
    "Current_OperationStatus_T",
    _members(
        CurrentOperationStatusType,
        "COS_",
        "Idle=IDLE Pending=PENDING InProgress=IN_PROGRESS Completed=COMPLETED Aborted=ABORTED",
    ),
    prefix="COS_",
)
THRESHOLD: Final = _same("PMThresholdType_T", PerformanceMonitoringThresholdTypeType, numbered=True, prefix="TWM_")
GRANULARITY: Final = _same("Granularity_T", PerformanceMonitoringGranularityType)
LOCATION: Final = Choices(
    "PMLocation_T",
    _members(
        PerformanceMonitoringLocationType,
        "",
        "PML_NEAR_END_Rx PML_FAR_END_Rx PML_FAR_END_Tx=PML_FAR_ENDTypex PML_BIDIRECTIONAL PML_CONTRA_NEAR_END_Rx "
        "PML_CONTRA_FAR_END_Rx",
    ),
    numbered=False,
    prefix="PML_",
)
COMMUNICATION: Final = Choices(
    "CommunicationState_T",
    _members(CommunicationStateType, "", "CS_AVAILABLE CS_UNAVAILABLE"),
    boolean=(CommunicationStateType.CS_UNAVAILABLE, CommunicationStateType.CS_AVAILABLE),
    prefix="CS_",
)
DIRECTION: Final = _same("ConnectionDirection_T", ConnectionDirectionType, numbered=True, prefix="CD_")
SHAPE: Final = _same("SNCType_T", SubnetworkConnectionTypeType, numbered=True, prefix="ST_")
DIRECTIONALITY: Final = _same("Directionality_T", DirectionalityType, prefix="D_")
CONNECTION_STATE: Final = _same("TPConnectionState_T", TerminationPointConnectionStateType, prefix="TPCS_")
MAPPING_MODE: Final = _same("TerminationMode_T", TerminationModeType, prefix="TM_")
ASSOCIATION: Final = _same("TPProtectionAssociation_T", TerminationPointProtectionAssociationType, prefix="TPPA_")
HOLDER_STATE: Final = _same("HolderState_T", HolderStateType)
HOLDER: Final = _same("EquipmentHolderType_T", EquipmentHolderEnumType)
SERVICE_STATE: Final = _same("ServiceState_T", ResourceFulfillmentStateEnumType)
